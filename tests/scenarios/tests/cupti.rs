//! Tests that scenarios find CUPTI if, and only if, they ask for it.

mod simulated {
    use gpu_time_sim_cupti::{SimCupti, Version};

    use crate::harness::scenario;

    #[test]
    fn stand_in_is_found_in_every_version() {
        for version in [Version::V11_8, Version::V12_4, Version::V13_0, Version::V13_2] {
            let run =
                scenario("cupti/version", &[version.file()]).on_cupti(SimCupti::new(version)).run();
            assert_eq!(run.fact("version"), u64::from(version.number()), "{version:?}");
        }
    }

    #[test]
    fn stand_in_is_not_found_unless_asked_for() {
        let with = scenario("cupti/version", &["libcupti.so.13"]).with_cupti().run();
        assert_eq!(with.fact("version"), u64::from(Version::V13_0.number()));
        // The machine may have a library, but not this version, which does not exist.
        let (file, number) = (Version::V99.file(), u64::from(Version::V99.number()));
        let with = scenario("cupti/version", &[file]).on_cupti(SimCupti::new(Version::V99)).run();
        assert_eq!(with.fact("version"), number);
        let without = scenario("cupti/version", &[file]).run();
        assert_ne!(without.fact("version"), number);
    }
}
