//! Tests with generated programs that mix all kinds of annotated functions. Every figure of the report is compared
//! with what the simulated driver ran.

mod simulated {
    mod compare;
    mod figures;
    mod generate;
    mod truth;

    use std::io::Write;

    use gpu_time_scenarios::composition::Program;

    use crate::harness::{Run, SMALL_L2, scenario};
    use compare::compare;
    use figures::Figure;
    use generate::{Plan, generate};
    use truth::Truth;

    /// Runs a program, and returns what the report says of it beside what is true.
    fn check(program: &Program, record: Option<&str>) -> (Run, Vec<Figure>) {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let text = serde_json::to_string(program).expect("the program serializes");
        file.write_all(text.as_bytes()).expect("the program is written");
        let path = file.path().to_str().expect("the path is UTF-8");
        let mut scenario = scenario("mixed/program", &[path])
            .simulated(|sim| sim.model(SMALL_L2))
            .with_cupti();
        if let Some(record) = record {
            scenario = scenario.env("GPU_TIME_RECORD", record);
        }
        let run = scenario.run();
        let truth = Truth::of(program, &run);
        let figures = compare(&run, &truth, record);
        (run, figures)
    }

    #[test]
    fn mixed_programs() {
        let seeds = std::env::var("GPU_TIME_MIXED_SEEDS").unwrap_or_else(|_| "0..4".to_owned());
        let (from, to) = seeds.split_once("..").expect("`GPU_TIME_MIXED_SEEDS` is `from..to`");
        let seeds = from.parse::<u64>().unwrap()..to.parse().unwrap();
        for seed in seeds {
            let Plan { program, record } = generate(seed);
            let (run, figures) = check(&program, record.as_deref());
            if std::env::var_os("GPU_TIME_MIXED_SHOW").is_some() {
                println!("{record:?} {}\n{}", serde_json::to_string(&program).unwrap(), run.stderr);
            }
            for figure in figures {
                println!("{seed} {record:?} {figure}");
            }
        }
    }
}
