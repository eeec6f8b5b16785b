//! Tests with generated programs that mix all kinds of annotated functions. Every figure of the report is compared
//! with what the simulated driver ran.

mod simulated {
    mod checks;
    mod compare;
    mod figures;
    mod generate;
    mod truth;

    use std::collections::BTreeMap;
    use std::io::Write;
    use std::ops::Range;
    use std::panic::catch_unwind;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::thread;

    use crate::harness::{Run, SMALL_L2, scenario};
    use compare::compare;
    use figures::{Figure, LEFT_OUT};
    use generate::{Feature, Plan, generate};
    use truth::Truth;

    /// The programs that always run. With these, each setting and each feature occurs several times.
    const SEEDS: Range<u64> = 0..24;

    /// Runs a program, and returns what the report says of it beside what is true.
    fn check(plan: &Plan) -> (Run, Vec<Figure>) {
        let Plan { program, record, .. } = plan;
        let record = record.as_deref();
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let text = serde_json::to_string(program).expect("the program serializes");
        file.write_all(text.as_bytes()).expect("the program is written");
        let path = file.path().to_str().expect("the path is UTF-8");
        let mut scenario =
            scenario("mixed/program", &[path]).simulated(|sim| sim.model(SMALL_L2)).with_cupti();
        if let Some(record) = record {
            scenario = scenario.env("GPU_TIME_RECORD", record);
        }
        // In phases, the number of spans is an estimate.
        if program.spans && record != Some("on") {
            scenario = scenario.keeps_counting();
        }
        let run = scenario.run();
        let truth = Truth::of(program, &run);
        let figures = compare(&run, &truth, plan);
        (run, figures)
    }

    /// Runs the programs of these seeds, a few at a time: they mostly let time pass. Returns the figures of each.
    fn check_all(seeds: Range<u64>) -> BTreeMap<u64, Vec<Figure>> {
        let (next, figures) = (AtomicU64::new(seeds.start), Mutex::new(BTreeMap::new()));
        let failed = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Relaxed);
                        if seed >= seeds.end {
                            break;
                        }
                        let plan = plan(seed);
                        let checked = catch_unwind(|| check(&plan));
                        let Ok((run, found)) = checked else {
                            println!("{seed} {:?} {:?} PANICKED", plan.record, plan.features);
                            failed.fetch_add(1, Relaxed);
                            continue;
                        };
                        show(seed, &plan, &run, &found);
                        figures.lock().unwrap().insert(seed, found);
                    }
                });
            }
        });
        assert_eq!(failed.into_inner(), 0, "some programs failed");
        figures.into_inner().unwrap()
    }

    /// Generates a program. `GPU_TIME_MIXED_RECORD` and `GPU_TIME_MIXED_WITHOUT`, a list of features, restrict what is
    /// generated.
    fn plan(seed: u64) -> Plan {
        let without = std::env::var("GPU_TIME_MIXED_WITHOUT").unwrap_or_default();
        let is_without = |feature: &Feature| {
            let name = format!("{feature:?}");
            without.split(',').any(|one| one == name || one == "all")
        };
        let without: Vec<_> = Feature::ALL.into_iter().filter(is_without).collect();
        let plan = generate(seed, &without);
        match std::env::var("GPU_TIME_MIXED_RECORD") {
            Ok(record) => Plan { record: Some(record), ..plan },
            Err(_) => plan,
        }
    }

    fn show(seed: u64, plan: &Plan, run: &Run, figures: &[Figure]) {
        let starved = run.report().total(|row| row.starved);
        let outside = figures.iter().filter(|figure| figure.is_outside()).count();
        let record = &plan.record;
        let (features, count) = (&plan.features, figures.len());
        println!("{seed} {record:?} {features:?}: {outside} of {count} outside, {starved} starved");
        let is_whole = std::env::var_os("GPU_TIME_MIXED_SHOW").is_some();
        if is_whole {
            let program = serde_json::to_string(&plan.program).expect("the program serializes");
            println!("{program}\n{}", run.stderr);
            for (path, node) in crate::harness::tree::paths(run) {
                println!("NODE {path}: {node:?}");
            }
        }
        for figure in figures.iter().filter(|figure| is_whole || figure.is_outside()) {
            println!("{seed} {record:?} {figure}");
        }
    }

    /// Prints how often each kind of figure was outside and how often it was wrong, with the worst seeds.
    fn sum_up(found: &BTreeMap<u64, Vec<Figure>>) {
        let mut kinds: BTreeMap<&str, Vec<(f64, u64)>> = BTreeMap::new();
        for (seed, figures) in found {
            for figure in figures {
                kinds.entry(figure.kind).or_default().push((figure.off(), *seed));
                if figure.is_wrong() {
                    println!("{seed} {figure}");
                }
            }
        }
        for (kind, mut figures) in kinds {
            figures.sort_by(|one, other| other.0.total_cmp(&one.0));
            let outside = figures.iter().filter(|(off, _)| *off > 1.0).count();
            let mut worst: Vec<u64> = Vec::new();
            for (_, seed) in &figures[..outside] {
                if worst.len() < 6 && !worst.contains(seed) {
                    worst.push(*seed);
                }
            }
            let left_out = LEFT_OUT.iter().find(|(left_out, _)| *left_out == kind);
            let why = left_out.map_or("", |(_, why)| why);
            println!(
                "{kind:>32}: {outside:>4} of {:>6} outside, most for {worst:?} {why}",
                figures.len()
            );
        }
    }

    /// `GPU_TIME_MIXED_PROGRAM=file` runs the program in this file, with `GPU_TIME_MIXED_RECORD`.
    #[test]
    fn given_program() {
        let Some(file) = std::env::var_os("GPU_TIME_MIXED_PROGRAM") else { return };
        let text = std::fs::read_to_string(file).expect("the file with the program");
        let program = serde_json::from_str(&text).expect("a program");
        let record = std::env::var("GPU_TIME_MIXED_RECORD").ok();
        let plan = Plan { program, record, features: Vec::new() };
        let (run, figures) = check(&plan);
        show(0, &plan, &run, &figures);
    }

    /// `GPU_TIME_MIXED_SEEDS=0..1000` runs other programs, and says how often each kind of figure is outside.
    #[test]
    fn figures_of_mixed_programs_are_right_within_their_errors() {
        if let Ok(seeds) = std::env::var("GPU_TIME_MIXED_SEEDS") {
            let (from, to) = seeds.split_once("..").expect("`GPU_TIME_MIXED_SEEDS` is `from..to`");
            let seed = |text: &str| text.parse::<u64>().expect("a seed");
            return sum_up(&check_all(seed(from)..seed(to)));
        }
        let found = check_all(SEEDS);
        let wrong: Vec<_> = found
            .iter()
            .flat_map(|(seed, figures)| figures.iter().map(move |figure| (seed, figure)))
            .filter(|(_, figure)| figure.is_wrong())
            .map(|(seed, figure)| format!("{seed}: {figure}"))
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
