//! Tests that live export agrees with the report.

use std::collections::BTreeMap;

use crate::harness::report::{Series, Site};
use crate::harness::{Run, Scenario, is_real, scenario};

type Labels = BTreeMap<String, String>;

/// The response to a scrape: the labels and value of each line, by metric name.
struct Scrape(BTreeMap<String, Vec<(Labels, f64)>>);

impl Scrape {
    fn of(run: &Run) -> Scrape {
        let mut scrape: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for line in run.text("metrics").lines().filter(|line| !line.starts_with('#')) {
            let Some((what, value)) = line.rsplit_once(' ') else { continue };
            let (name, labels) = what.split_once('{').unwrap_or((what, "}"));
            let labels =
                parse_labels(labels.strip_suffix('}').unwrap_or_else(|| panic!("`{line}`")));
            scrape.entry(name.to_owned()).or_default().push((labels, value.parse().unwrap()));
        }
        Scrape(scrape)
    }

    /// Returns the sum over all lines that have these labels, or 0 if there are none.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |of: &Labels| {
            // A missing label counts as empty.
            let value = |key: &str| of.get(key).map_or("", String::as_str);
            labels.iter().all(|(key, wanted)| value(key) == *wanted)
        };
        let all = self.0.get(name).into_iter().flatten();
        all.filter(|(labels, _)| has(labels)).map(|(_, value)| value).sum()
    }
}

/// Parses labels as Prometheus does: `key="value",…`, with `\\`, `\"` and `\n` in values.
fn parse_labels(text: &str) -> Labels {
    let mut labels = Labels::new();
    let mut rest = text.chars().peekable();
    while rest.peek().is_some() {
        let key: String = rest.by_ref().take_while(|&c| c != '=').collect();
        assert_eq!(rest.next(), Some('"'), "{text}");
        let mut value = String::new();
        loop {
            match rest.next().unwrap_or_else(|| panic!("{text}")) {
                '"' => break,
                '\\' => value.push(match rest.next() {
                    Some('n') => '\n',
                    Some(c) => c,
                    None => panic!("{text}"),
                }),
                c => value.push(c),
            }
        }
        labels.insert(key, value);
        rest.next_if_eq(&',');
    }
    labels
}

/// Asserts that a site's exported values agree with the report.
#[track_caller]
fn assert_exported(scrape: &Scrape, site: &Site) {
    let function = [("function", &*site.name)];
    for (name, count) in [
        ("gpu_time_calls_total", site.calls),
        ("gpu_time_warmup_total", site.warmup),
        ("gpu_time_skipped_total", site.skipped),
        ("gpu_time_timed_total", site.timed),
    ] {
        assert_eq!(scrape.sum(name, &function), count as f64, "{name}: {}", site.name);
    }
    assert!(!site.series.is_empty());
    site.series.iter().for_each(|series| assert_series_exported(scrape, &site.name, series));
}

#[track_caller]
fn assert_series_exported(scrape: &Scrape, function: &str, series: &Series) {
    let launch = series.launch.as_ref().map(|launch| launch.index.to_string()).unwrap_or_default();
    let labels = [
        ("function", function),
        ("device", &*series.device),
        ("measure", &*series.measure),
        ("cache", &*series.cache),
        ("clock", &*series.clock),
        ("graph", if series.graph { "true" } else { "false" }),
        ("launch", &*launch),
    ];
    let sum = |name: &str, more: &[(&str, &str)]| scrape.sum(name, &[&labels, more].concat());
    for (name, count) in [
        ("gpu_time_fed_total", series.fed),
        ("gpu_time_starved_total", series.starved),
        ("gpu_time_at_floor_total", series.at_floor),
        ("gpu_time_opened_total", series.opened),
    ] {
        assert_eq!(sum(name, &[]), count as f64, "{name}: {series:?}");
    }
    for (reason, count) in &series.lost {
        assert_eq!(sum("gpu_time_lost_total", &[("reason", reason)]), *count as f64, "{series:?}");
    }
    let kind = if series.net_ns.is_some() { "net" } else { "raw" };
    let fed = if series.clock == "kernels" { series.opened } else { series.fed };
    for (fed, count) in [("true", fed), ("false", series.starved)] {
        let times = [("fed", fed), ("time", kind)];
        assert_eq!(sum("gpu_time_seconds_count", &times), count as f64, "{series:?}");
    }
    // The histogram is accurate to 32 ns, and to 0.2 % for samples over a millisecond, which occur
    // on a busy host.
    let total_ns = sum("gpu_time_seconds_sum", &[]) * 1e9;
    let stats = series.net_ns.as_ref().or(series.raw_ns.as_ref());
    let truth_ns = stats.map_or(0.0, |s| s.sum);
    let bound = 32.5 * (fed + series.starved) as f64 + 0.002 * truth_ns;
    assert!((total_ns - truth_ns).abs() <= bound, "{total_ns}: {series:?}");
}

/// Gives the bias. The process measures it at its end, and values already published are not corrected then.
fn exporting(name: &str) -> Scenario {
    scenario(name, &[]).env("GPU_TIME_BIAS", "1us")
}

#[test]
fn concurrent_record_scrape_and_publish() {
    let run = exporting("export/threads").run();
    let scrape = Scrape::of(&run);
    assert!(run.fact("scrapes") > 0);
    assert_eq!(run.site("export::timed").calls, 1_600);
    assert_exported(&scrape, run.site("export::timed"));
}

#[test]
fn every_series_is_exported() {
    let run = exporting("export/series").run();
    let scrape = Scrape::of(&run);
    let two = run.site("export::two");
    assert_eq!((two.counts(), two.launch(1).lost("failed")), ((12, 2, 0, 10), 3));
    assert_exported(&scrape, two);
    assert_exported(&scrape, run.site("export <b>\"x\"\\</b>, {y=\"1\"}"));
    // Sites that were never called are not exported.
    assert_eq!(scrape.0["gpu_time_calls_total"].len(), 2);
    let gauges = |name: &str| scrape.0.get(name).map_or(0, Vec::len);
    assert_eq!((gauges("gpu_time_sample_rate"), scrape.sum("gpu_time_sample_rate", &[])), (2, 2.0));
    // There is no budget.
    assert_eq!(["gpu_time_budget_share", "gpu_time_budget_cost_share"].map(gauges), [0; 2]);
}

#[test]
fn opened_calls_are_exported() {
    let run = exporting("export/opened").recorded().run();
    let scrape = Scrape::of(&run);
    let [by_kernels, on_stream] =
        ["export::by_kernels", "export::on_stream"].map(|name| run.site(name));
    assert_eq!(by_kernels.series[0].opened, 40);
    // The function has a row, and so has its launch.
    assert!(on_stream.series.iter().all(|series| series.opened == 40), "{on_stream:?}");
    assert_exported(&scrape, by_kernels);
    assert_exported(&scrape, on_stream);
}

#[test]
fn devices_are_exported() {
    let run = scenario("export/devices", &[]).with_cupti().run();
    let scrape = Scrape::of(&run);
    let device = &run.report().devices[0];
    let uuid = device.uuid.as_deref().unwrap();
    let labels = [("device", "cuda:0"), ("gpu", &*device.name), ("uuid", uuid)];
    let value = |what: &str| {
        let lines = &scrape.0[&format!("gpu_time_device_{what}")];
        assert_eq!(lines.len(), 1, "{lines:?}");
        scrape.sum(&format!("gpu_time_device_{what}"), &labels)
    };
    let (busy, attributed) = (value("busy_share"), value("attributed_share"));
    // Nothing else uses the GPU.
    assert!(busy > 0.0 && busy <= 1.0 && attributed <= busy, "{busy} {attributed}");
    let (sm, memory) = (value("sm_clock_hertz"), value("memory_clock_hertz"));
    if is_real() {
        assert!(sm > 1e8 && memory > 1e8, "{sm} {memory}");
    } else {
        assert_eq!((sm, memory), (1_980e6, 3_201e6));
    }
}

#[test]
fn budget_and_cost_are_exported() {
    let run = scenario("export/series", &[]).env("GPU_TIME_BUDGET", "2%").untraced().run();
    let scrape = Scrape::of(&run);
    let [share, cost] = ["gpu_time_budget_share", "gpu_time_budget_cost_share"].map(|name| {
        let [(labels, value)] = &scrape.0[name][..] else { panic!("expected one `{name}`") };
        assert!(labels.is_empty(), "{labels:?}");
        *value
    });
    assert_eq!(share, 0.02);
    let reported = run.report().process.budget.as_ref().unwrap().cost_share;
    assert!(cost >= 0.0 && cost.is_finite() && reported.is_finite(), "{cost} {reported}");
    let rate = scrape.sum("gpu_time_sample_rate", &[("function", "scenario::export::two")]);
    assert!(rate > 0.0 && rate <= 1.0, "{rate}");
}

#[test]
fn equal_names_get_distinct_labels() {
    let run = scenario("export/twins", &[]).run();
    let scrape = Scrape::of(&run);
    let twins = run.report().sites.iter().filter(|site| site.name == "export twin");
    let twins: Vec<_> =
        twins.map(|site| (site.calls, format!("{}:{}", site.file, site.line))).collect();
    assert_eq!([twins[0].0, twins[1].0], [3, 5]);
    for (calls, place) in &twins {
        let function = format!("export twin ({place})");
        assert!(run.stderr.contains(&format!("\n{function}  ")), "{}", run.stderr);
        let function = [("function", &*function)];
        assert_eq!(scrape.sum("gpu_time_calls_total", &function), *calls as f64);
        assert_eq!(scrape.sum("gpu_time_fed_total", &function), *calls as f64);
        assert_eq!(scrape.sum("gpu_time_sample_rate", &function), 1.0);
    }
    assert_eq!(scrape.sum("gpu_time_calls_total", &[]), 8.0);
}

#[test]
fn late_recorder_gets_later_values() {
    let run = scenario("export/late", &[]).run();
    let scrape = Scrape::of(&run);
    assert_eq!(run.site("export::timed").calls, 15);
    assert_eq!(scrape.sum("gpu_time_calls_total", &[]), 5.0);
    // Five samples of the function's sum, and five of its only launch.
    for measure in ["sum", "launch"] {
        assert_eq!(scrape.sum("gpu_time_seconds_count", &[("measure", measure)]), 5.0);
    }
}

#[test]
fn automatic_publish() {
    let run = exporting("export/automatic").run();
    assert_exported(&Scrape::of(&run), run.site("export::timed"));
}

#[test]
fn publish_without_recorder() {
    let run = scenario("export/no_recorder", &[]).run();
    assert_eq!(run.row("export::timed").brackets(), (5, 5, 0, 0));
}

mod simulated {
    use gpu_time_sim_nvml::Script;

    use super::*;

    /// Otherwise, metrics could not be joined with the report.
    #[test]
    fn mig_device_has_one_uuid_in_metrics_and_report() {
        let script = Script::calm(1).with(|device| device.mig = Some(true));
        let run = scenario("export/devices", &[]).nvml(script).with_cupti().run();
        let uuid = run.report().devices[0].uuid.as_deref().unwrap();
        assert!(uuid.starts_with("MIG-"), "{uuid}");
        let exported = &Scrape::of(&run).0["gpu_time_device_busy_share"];
        assert!(exported.iter().all(|(labels, _)| labels["uuid"] == uuid), "{exported:?}");
    }
}
