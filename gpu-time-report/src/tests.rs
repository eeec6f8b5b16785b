//! Tests that apply to all renderings.

use crate::fixtures::{everything, gpu, process, rated, row, site};
use crate::*;

#[test]
fn renderings_have_no_control_characters() {
    let snapshot = everything();
    for text in [snapshot.to_string(), snapshot.to_json(), snapshot.to_csv()] {
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    }
}

#[test]
fn inconsistent_counts_have_a_warning() {
    let mut sites = vec![site(
        "app::f",
        1,
        ScopeKind::Body,
        [1, 2, 3],
        vec![row("cuda:0", Measure::Span, [9, 9])],
    )];
    sites[0].calls = 7;
    sites[0].series[0].timed = 3;
    sites[0].series[0].fed = 1;
    let broken = [
        "`app::f`: 7 calls, but 1 warm-up + 2 skipped + 3 timed",
        "`app::f` on cuda:0: 3 timed, but 2 measured + 0 opened + 0 in flight + 0 lost",
        "`app::f` on cuda:0: 2 measured, but 1 fed + 0 starved + 0 at the floor",
    ];
    let snapshot = Snapshot::new(process(None), vec![gpu()], sites);
    assert_eq!(snapshot.process.warnings, broken);
    for line in broken {
        assert!(snapshot.to_string().contains(&format!("\nwarning: {line}\n")));
    }
    assert_eq!(everything().inconsistencies(), Vec::<String>::new());
}

/// Host time, and time between two barriers, must not count as GPU time.
#[test]
fn dashboard_gpu_panels_leave_out_host_times() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/grafana.json");
    let dashboard = std::fs::read_to_string(path).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut count = 0;
    for panel in panels.iter().filter(|panel| panel["title"].as_str().unwrap().contains("GPU")) {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            // Only the sums must select a clock. The number of calls in the estimate covers all clocks.
            for series in query.split("gpu_time_seconds_sum").skip(1) {
                let selector = series.split('}').next().unwrap();
                assert!(selector.contains("clock=~\"events|kernels\""), "{query}");
                count += 1;
            }
        }
    }
    assert_eq!(count, 2);
}

#[test]
fn peak_share_is_of_the_series_device() {
    let snapshot = rated();
    let peak_share = |name: &str| snapshot.site(name).unwrap().series[0].bytes.unwrap().peak_share;
    assert_eq!(peak_share("app::copy"), Some(0.8));
    // The host has no peak bandwidth.
    assert_eq!(peak_share("app::host"), None);
}

#[test]
fn rates_are_in_every_rendering() {
    let snapshot = rated();
    let json: serde_json::Value = serde_json::from_str(&snapshot.to_json()).unwrap();
    let series = |site: usize| &json["sites"][site]["series"][0];
    let bytes = serde_json::json!({
        "samples": 11, "per_call": 8e6, "total": 88e6, "gb_per_s": 4_000.0, "peak_share": 0.8,
    });
    assert_eq!(series(0)["bytes"], bytes);
    let flops = serde_json::json!({
        "samples": 2, "per_call": null, "total": 6e9, "tflop_per_s": 200.0,
    });
    assert_eq!(series(1)["flops"], flops);
    assert!(series(5)["bytes"].is_null() && series(5)["flops"].is_null());
    assert_eq!(json["devices"][0]["peak_gb_per_s"], 5_000.0);
    assert_eq!(series(3)["clock"], "sync");

    let csv = snapshot.to_csv();
    let mut reader = ::csv::Reader::from_reader(csv.as_bytes());
    let columns = reader.headers().unwrap().clone();
    let row = reader.records().map(Result::unwrap).find(|row| &row[0] == "app::host").unwrap();
    let cell = |name: &str| &row[columns.iter().position(|column| column == name).unwrap()];
    assert_eq!(["function", "gb_per_s", "tflop_per_s"].map(cell), ["app::host", "1", ""]);
}
