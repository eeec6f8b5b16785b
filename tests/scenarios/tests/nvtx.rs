//! Tests for the ranges that a tool sees.

mod simulated {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use gpu_time_sim_nvtx::{Event, SimNvtx};

    use crate::harness::{Run, Scenario, scenario};

    const PATH: &str = "NVTX_INJECTION64_PATH";

    /// Returns each thread's ranges as `name{inner{}}`, in the order of the threads' first ranges.
    fn ranges(run: &Run) -> Vec<String> {
        let pid = run.report().process.pid;
        let mut threads: BTreeMap<u32, (usize, usize, String)> = BTreeMap::new();
        for (place, Event { pid: of, thread, begins }) in run.ranges.iter().flatten().enumerate() {
            assert_eq!(*of, pid, "a forked child makes no ranges");
            let (_, depth, text) = threads.entry(*thread).or_insert((place, 0, String::new()));
            match begins {
                Some(name) => {
                    *depth += 1;
                    *text += name.strip_prefix("scenario::nvtx::").unwrap_or(name);
                    text.push('{');
                }
                None => {
                    *depth -= 1;
                    text.push('}');
                }
            }
        }
        let mut threads: Vec<_> = threads.into_values().collect();
        threads.sort();
        assert!(threads.iter().all(|(_, depth, _)| *depth == 0), "{threads:?}");
        threads.into_iter().map(|(_, _, text)| text).collect()
    }

    const ROUND: &str =
        "outer{by_events{}by_kernels{}nvtx block{by_host{}}nvtx guard{after_warmup{}}}";

    fn nested() -> Scenario {
        scenario("nvtx/nested", &["30"]).listens()
    }

    #[test]
    fn every_call_is_a_range_in_the_order_of_the_calls() {
        for run in [nested().run(), nested().with_cupti().run()] {
            assert_eq!(ranges(&run), [ROUND.repeat(30), ROUND.repeat(30)]);
            let timed: Vec<u64> = ["by_host", "after_warmup"]
                .map(|name| run.site(&format!("nvtx::{name}")).timed)
                .into();
            assert!(timed[0] < 20 && timed[1] == 0, "{timed:?}");
        }
    }

    #[test]
    fn calls_that_no_sampling_chooses_are_ranges() {
        let run = nested().env("GPU_TIME_SAMPLE", "0").run();
        assert!(run.report().sites.iter().all(|site| site.timed == 0));
        assert_eq!(ranges(&run), [ROUND.repeat(30), ROUND.repeat(30)]);
    }

    #[test]
    fn functions_outside_the_filter_have_no_range() {
        let run = nested().env("GPU_TIME_FILTER", "!*::by_events,!*block").run();
        let round = "outer{by_kernels{}by_host{}nvtx guard{after_warmup{}}}";
        assert_eq!(ranges(&run), [round.repeat(30), round.repeat(30)]);
    }

    #[test]
    fn tool_is_not_loaded_if_ranges_or_timing_are_off() {
        let off = nested().env("GPU_TIME_NVTX", "off").run();
        assert_eq!(off.ranges, None);
        let off = nested().env("GPU_TIME", "off").reports_nothing().run();
        assert_eq!(off.ranges, None);
    }

    #[test]
    fn range_of_a_future_is_open_only_while_it_is_polled() {
        for share in ["1", "0"] {
            let run = scenario("nvtx/futures", &[])
                .listens()
                .env("GPU_TIME_SAMPLE", share)
                .panics()
                .run();
            let begins = "waits{by_host{}}waits{}";
            let ends = "waits{}waits{by_host{}}";
            let main = [
                begins,
                &format!("waits_for_other{{}}waits_for_other{{{begins}}}"),
                ends,
                &format!("waits_for_other{{{ends}}}waits_for_other{{}}"),
                begins,
                // The future is dropped early.
                begins,
                "panics_at_last{}panics_at_last{}",
                "panics_at_last{}panics_at_last{}",
                "by_host{}",
            ];
            assert_eq!(ranges(&run), [main.concat(), ends.to_owned()]);
        }
    }

    #[test]
    fn panic_ends_its_ranges() {
        let run = scenario("nvtx/panics", &[]).listens().panics().run();
        assert_eq!(ranges(&run), ["unwinds{unwinds{unwinds{}}}by_host{}"]);
    }

    #[test]
    fn call_that_interrupts_the_runtime_has_no_range() {
        let run = scenario("reentry/handler", &[])
            .env("GPU_TIME_FILTER", "!scenario::reentry::off")
            .untraced()
            .listens()
            // Each signal waits for a round of the loop, whose ranges all go to a file.
            .timeout(Duration::from_secs(300))
            .run();
        let seen = ranges(&run).concat();
        for (name, calls) in [("on_host", run.fact("rounds")), ("interrupting", 0)] {
            let calls = calls + run.fact("signals");
            let begun = seen.matches(&format!("scenario::reentry::{name}{{")).count() as u64;
            assert_eq!(begun, calls - run.fact("inside"), "{name}");
        }
    }

    #[test]
    fn allocator_may_call_while_a_range_begins() {
        let run = scenario("reentry/allocator", &[]).reports(1).listens().run();
        let seen = ranges(&run).concat();
        assert_eq!(seen.matches("scenario::reentry::on_gpu{").count(), 800);
    }

    #[test]
    fn forked_child_has_no_ranges() {
        let run = scenario("nvtx/fork", &[]).listens().run();
        assert_eq!(ranges(&run), ["forks{by_host{}}"]);
    }

    #[test]
    fn tool_that_cannot_attach_is_named_once() {
        let library = SimNvtx::library().unwrap();
        let refuses = library.to_str().unwrap();
        for (path, why) in [
            (
                "/no/such/tool.so",
                "cannot be loaded: /no/such/tool.so: cannot open shared object file",
            ),
            ("/dev/null", "cannot be loaded: /dev/null: "),
            ("libc.so.6", "is not an NVTX injection library"),
            (refuses, "refused to attach"),
        ] {
            let run = scenario("nvtx/panics", &[])
                .env(PATH, path)
                .complains("gpu-time: no NVTX ranges: `")
                .warns("no NVTX ranges: `")
                .panics()
                .run();
            let named = format!("no NVTX ranges: `{path}`, which `{PATH}` names, {why}");
            assert!(run.stderr.contains(&named), "{named}\n{}", run.stderr);
        }
    }

    #[test]
    fn missing_tool_is_an_error_only_if_it_is_expected() {
        scenario("nvtx/panics", &[]).panics().run();
        let expected = "no NVTX ranges: `GPU_TIME_NVTX` is `on`, but no tool has set";
        scenario("nvtx/panics", &[])
            .env("GPU_TIME_NVTX", "on")
            .complains("gpu-time: no NVTX ranges: `GPU_TIME_NVTX` is `on`, but no tool has set")
            .warns(expected)
            .panics()
            .run();
    }
}
