//! Tests with randomly generated programs.

mod simulated {
    use std::cell::Cell;

    use gpu_time_scenarios::script::{Call, Ending, Mode, SITES, STREAMS, Script, Step};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    use crate::harness::{Run, SMALL_L2, scenario};

    fn call(depth: u32) -> BoxedStrategy<Call> {
        let ending = prop_oneof![
            6 => Just(Ending::Whole),
            1 => Just(Ending::Early),
            1 => Just(Ending::Fails),
            1 => Just(Ending::Panics),
        ];
        let inner = if depth == 0 {
            Just(None).boxed()
        } else {
            prop_oneof![4 => Just(None), 1 => call(depth - 1).prop_map(|call| Some(Box::new(call)))]
                .boxed()
        };
        (0..SITES, 0..STREAMS, ending, inner)
            .prop_map(|(site, stream, ending, inner)| Call { site, stream, ending, inner })
            .boxed()
    }

    fn step() -> impl Strategy<Value = Step> {
        let mode = prop_oneof![Just(Mode::Global), Just(Mode::ThreadLocal), Just(Mode::Relaxed)];
        prop_oneof![
            20 => call(3).prop_map(Step::Call),
            3 => (0..STREAMS).prop_map(Step::Synchronize),
            2 => (mode, vec(call(1), 1..4)).prop_map(|(mode, calls)| Step::Capture(mode, calls)),
            1 => Just(Step::Snapshot),
            1 => any::<bool>().prop_map(Step::Switch),
            1 => (0..500u64).prop_map(Step::Advance),
        ]
    }

    fn script() -> impl Strategy<Value = Script> {
        // A program without any call makes no report.
        let first = call(0).prop_map(Step::Call);
        (first, vec(vec(step(), 1..60), 1..4)).prop_map(|(first, mut threads)| {
            threads[0].insert(0, first);
            Script { threads }
        })
    }

    /// Generates faults in functions that the program itself does not call.
    fn faults() -> impl Strategy<Value = String> {
        let function = prop::sample::select(vec![
            "cuCtxGetId",
            "cuEventCreate",
            "cuEventElapsedTime_v2",
            "cuEventRecord",
            "cuMemHostRegister_v2",
            "cuMemsetD32Async",
            "cuStreamIsCapturing",
        ]);
        let code = prop::sample::select(vec![1, 2, 700, 719, 999]);
        let fault = (function, 1..80u32, prop_oneof![4 => Just(""), 1 => Just("+")], code)
            .prop_map(|(function, nth, on, code)| format!("{function}:{nth}{on}={code}"));
        vec(fault, 0..3).prop_map(|faults| faults.join(";"))
    }

    fn run(script: &Script, faults: &str) -> Run {
        let script = serde_json::to_string(script).expect("the script serializes");
        // The harness checks everything that must hold for every run, including the value of each
        // sample.
        scenario("random/script", &[&script])
            .simulated(|sim| sim.model(SMALL_L2).faults(faults))
            .run()
    }

    #[test]
    fn random_programs() {
        // `PROPTEST_CASES=3000` searches for longer.
        let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
        let cases = cases.unwrap_or(150);
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new(config);
        let (samples, lost) = (Cell::new(0), Cell::new(0));
        runner
            .run(&(script(), faults()), |(script, faults)| {
                let run = run(&script, &faults);
                samples.set(samples.get() + run.report().total(|row| row.measured));
                lost.set(lost.get() + run.report().total(|row| row.all_lost()));
                prop_assert_eq!(run.report().total(|row| row.in_flight), 0);
                Ok(())
            })
            .unwrap();
        println!("{samples:?} samples, {lost:?} lost");
        // Programs without samples would prove nothing.
        assert!(samples.get() > 1_000 && lost.get() > 100);
    }
}
