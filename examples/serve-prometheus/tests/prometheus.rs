//! Prometheus scrapes `serve-prometheus`, which runs on the simulated driver. Its responses must
//! agree with the report, and it must answer every query in the dashboard and the docs.
//!
//! Needs the feature `prometheus-tests`, and `prometheus` on the path, for example from Debian:
//! `apt-get install --no-install-recommends prometheus`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gpu_time_sim_cupti::SimCupti;
use gpu_time_sim_driver::SimDriver;
use gpu_time_sim_nvml::{Script, SimNvml};
use serde_json::Value;

/// The time after which a process is assumed to hang.
const LIMIT: Duration = Duration::from_secs(120);

/// A child process, killed when the test ends.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // The process may already have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Process {
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Process(child)
}

/// Returns a local address with a free port.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    listener.local_addr().expect("it has an address")
}

fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::InvalidData)?;
    Ok(body.to_owned())
}

/// Evaluates an expression. Returns the labels and value of each series, or `None` if Prometheus is
/// not responding yet.
fn results(prometheus: SocketAddr, expression: &str) -> Option<Vec<Value>> {
    let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = get(prometheus, &format!("/api/v1/query?query={encoded}")).ok()?;
    let answer: Value = serde_json::from_str(&answer).ok()?;
    assert_eq!(answer["errorType"], Value::Null, "{expression}: {answer}");
    answer["data"]["result"].as_array().cloned()
}

/// Evaluates an expression whose result is a single number. Returns `None` while there is no
/// result.
fn query(prometheus: SocketAddr, expression: &str) -> Option<f64> {
    let results = results(prometheus, expression)?;
    assert!(results.len() <= 1, "{expression}: {results:?}");
    results.first()?["value"][1].as_str()?.parse().ok()
}

/// Repeats `answer` until it returns a value.
fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the bounds, in seconds, of the histogram bucket that contains a time.
fn bucket(metrics: &str, seconds: f64) -> (f64, f64) {
    let lines = metrics.lines().filter(|line| line.starts_with("gpu_time_seconds_bucket{"));
    let bounds = lines.filter_map(|line| line.split_once("le=\"")?.1.split_once('"'));
    let bounds: Vec<f64> = bounds.filter_map(|(bound, _)| bound.parse().ok()).collect();
    let below = bounds.iter().copied().filter(|&bound| bound < seconds).fold(0.0, f64::max);
    let above = bounds.iter().copied().filter(|&bound| bound >= seconds).fold(f64::MAX, f64::min);
    assert!((1e-6..10.0).contains(&below) && above <= 2.0 * below, "{below} to {above}");
    (below, above)
}

/// Returns the names of all metrics in a scrape, each with its label names.
fn labels_of_metrics(metrics: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut labels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.starts_with("gpu_time_")) {
        let (name, rest) = line.split_once(['{', ' ']).expect("a value follows");
        // No label value here contains a quote or a comma.
        let pairs = rest.split(',').filter_map(|pair| pair.split_once("=\""));
        labels.entry(name).or_default().extend(pairs.map(|(label, _)| label));
    }
    labels
}

/// Asserts that all metrics and labels in an expression were scraped.
fn assert_exported(labels: &BTreeMap<&str, BTreeSet<&str>>, expression: &str) {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut of_any = BTreeSet::<&str>::new();
    for (at, _) in expression.match_indices("gpu_time_") {
        let rest = &expression[at..];
        let (name, rest) = rest.split_at(rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()));
        let known = labels.get(name).unwrap_or_else(|| panic!("no `{name}`: {expression}"));
        of_any.extend(known);
        let chosen = rest.strip_prefix('{').and_then(|rest| rest.split('}').next());
        for matcher in chosen.into_iter().flat_map(|chosen| chosen.split(',')) {
            let label = matcher.trim().split(|c| !is_of_name(c)).next().expect("there is one");
            assert!(known.contains(label), "no `{label}` of `{name}`: {expression}");
        }
    }
    assert!(!of_any.is_empty(), "no metric of ours: {expression}");
    for list in expression.split("by (").skip(1) {
        let list = list.split(')').next().expect("there is one").split(',');
        for label in list.map(str::trim) {
            assert!(of_any.contains(label), "no `{label}`: {expression}");
        }
    }
}

/// Returns the queries in the dashboard, each with the labels in its legend.
fn dashboard() -> Vec<(String, Vec<String>)> {
    let dashboard: Value =
        serde_json::from_str(include_str!("../../../docs/grafana.json")).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("there are panels").iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().expect("each asks"));
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let asked = targets.map(|target| {
        let legend = text(&target["legendFormat"]);
        let labels = legend.split("{{").skip(1).filter_map(|part| part.split("}}").next());
        (text(&target["expr"]), labels.map(str::to_owned).collect())
    });
    asked.collect()
}

/// Returns the queries in the docs, without comments.
fn documented() -> Vec<String> {
    let blocks = include_str!("../../../docs/production.md").split("```promql\n").skip(1);
    let text: String = blocks.filter_map(|block| block.split("```").next()).collect();
    let code = |query: &str| {
        let lines = query.lines().filter(|line| !line.starts_with('#'));
        lines.collect::<Vec<_>>().join("\n")
    };
    text.split("\n\n").map(code).collect()
}

/// Returns the documented estimate of a function's GPU seconds over all calls, since the program began.
fn estimate(function: &str) -> String {
    let of_calls = |query: &String| query.contains("seconds_sum") && query.contains("calls_total");
    let query = documented().into_iter().find(of_calls).expect("it is documented");
    let query = query.replace("rate(", "(").replace("[5m]", "");
    let chosen = query.replace("launch=\"\"", &format!("launch=\"\",{function}"));
    chosen.replace("calls_total", &format!("calls_total{{{function}}}"))
}

/// Asserts that Prometheus answers all queries in the dashboard and the docs. The program generates
/// every kind of event, so that no panel is empty.
fn assert_answered(prometheus: SocketAddr, metrics: &str, function: &str) {
    let mut labels = labels_of_metrics(metrics);
    // Prometheus adds this label to every metric that it scrapes.
    labels.values_mut().for_each(|labels| _ = labels.insert("instance"));
    // Only calls of the whole function are at the floor, and these have no launch label.
    labels.get_mut("gpu_time_at_floor_total").expect("a call is at the floor").insert("launch");
    let (panels, queries) = (dashboard(), documented());
    assert!(panels.len() >= 8 && queries.len() >= 7, "{panels:?}, {queries:?}");
    for (expression, legend) in panels {
        // The program has no phases. A scenario checks their metrics.
        if ["busy", "attributed"]
            .iter()
            .any(|what| expression.contains(&format!("gpu_time_device_{what}_share")))
        {
            continue;
        }
        assert_exported(&labels, &expression);
        let filled = expression.replace("$__rate_interval", "1m").replace("$function", function);
        let filled = filled.replace("$machine", ".*");
        let results = wait_for(&filled, || {
            results(prometheus, &filled).filter(|results| !results.is_empty())
        });
        for label in legend {
            let has = |result: &Value| result["metric"].get(&label).is_some();
            assert!(results.iter().all(has), "no `{label}` for the legend: {filled}: {results:?}");
        }
    }
    for expression in queries {
        assert_exported(&labels, &expression);
        wait_for(&expression, || results(prometheus, &expression));
    }
    // The variables used to select machines and a function.
    for choice in [
        r#""label_values(gpu_time_calls_total, instance)""#,
        r#""label_values(gpu_time_calls_total{instance=~\"$machine\"}, function)""#,
    ] {
        assert!(include_str!("../../../docs/grafana.json").contains(choice));
    }
    assert!(labels["gpu_time_calls_total"].contains("function"));
}

/// The program and Prometheus, which scrapes it.
struct Scraped {
    dir: tempfile::TempDir,
    program: Process,
    address: SocketAddr,
    prometheus: SocketAddr,
    _prometheus: Process,
}

impl Scraped {
    fn start(record: &str) -> Scraped {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let report = dir.path().join("report.json");
        // The simulated driver and NVML are found through the same library path.
        SimNvml::install(&dir.path().join("driver")).expect("it is installed");
        let sim = SimDriver::install(dir.path().join("driver")).expect("it is installed");
        let address = free_address();
        // Some of the event records that fail belong to brackets, which then count as lost.
        let faults: Vec<_> = (10..40).map(|n| format!("cuEventRecord:{n}00=1")).collect();
        let sim = sim.faults(&faults.join(";"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_serve-prometheus"));
        command.arg(address.to_string()).stdout(Stdio::null());
        command.env("GPU_TIME_REPORT", format!("json:{}", report.display()));
        // The budget exceeds the total cost of all calls, so that none is skipped.
        command.env("GPU_TIME_BUDGET", "50%").env("GPU_TIME_RECORD", record);
        sim.apply(&mut command);
        let cupti = SimCupti::default();
        cupti.install(&dir.path().join("cupti")).expect("it is installed");
        cupti.apply(&dir.path().join("cupti"), &mut command);
        SimNvml::new(Script::calm(1)).apply(&mut command, &dir.path().join("nvml"));
        let program = start(&mut command);

        let config = dir.path().join("prometheus.yml");
        let scrape = format!(
            "scrape_configs: [{{job_name: test, scrape_interval: 1s, static_configs: \
             [{{targets: ['{address}']}}]}}]\n"
        );
        std::fs::write(&config, scrape).expect("it is written");
        let prometheus = free_address();
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()))
            .arg(format!("--web.listen-address={prometheus}"))
            .args(["--log.level=error"]);
        let _prometheus = start(&mut command);
        Scraped { dir, program, address, prometheus, _prometheus }
    }

    /// Ends the program with SIGTERM, which makes it write its report, and returns the site of its
    /// function.
    fn site(mut self) -> Value {
        let ended = Command::new("kill").args(["-TERM", &self.program.0.id().to_string()]).status();
        assert!(ended.expect("there is a `kill`").success());
        let status = self.program.0.wait().expect("it ends");
        assert_eq!(status.signal(), Some(15));
        let report = std::fs::read_to_string(self.dir.path().join("report.json"));
        let report = report.expect("it reported before it ended");
        let report: Value = serde_json::from_str(&report).expect("the report is JSON");
        let sites = report["sites"].as_array().expect("there are sites");
        let site = sites.iter().find(|site| site["name"] == "serve_prometheus::saxpy");
        site.expect("it was called").clone()
    }
}

/// Returns the row of the function as a whole.
fn whole_function(site: &Value) -> &Value {
    let rows = site["series"].as_array().expect("there are series");
    rows.iter().find(|row| row["launch"].is_null()).expect("the function's")
}

#[test]
fn prometheus_agrees_with_report_and_answers_dashboard() {
    let scraped = Scraped::start("off");
    let prometheus = scraped.prometheus;
    let function = r#"function="serve_prometheus::saxpy""#;
    let whole = format!(r#"{function},launch="""#);
    wait_for("enough was scraped", || {
        query(prometheus, &format!("gpu_time_seconds_count{{{whole},fed=\"true\"}}"))
            .filter(|count| *count >= 200.0)
    });
    let median = query(
        prometheus,
        &format!(
            "histogram_quantile(0.5, sum by (le) (gpu_time_seconds_bucket{{{whole},fed=\"true\"}}))"
        ),
    );
    let median = median.expect("there are buckets");
    let calls = query(prometheus, &format!("gpu_time_calls_total{{{function}}}"));
    wait_for("a bracket is lost", || query(prometheus, "sum(gpu_time_lost_total)"));
    let metrics = get(scraped.address, "/metrics").expect("it is served");
    assert_answered(prometheus, &metrics, "serve_prometheus::saxpy");
    assert_eq!(query(prometheus, "gpu_time_budget_share"), Some(0.5));
    let cost = query(prometheus, "gpu_time_budget_cost_share");
    assert!(cost.is_some_and(|share| share > 0.0 && share < 1.0), "{cost:?}");
    let rate = query(prometheus, &format!("gpu_time_sample_rate{{{function}}}"));
    assert!(rate.is_some_and(|rate| rate > 0.0 && rate <= 1.0), "{rate:?}");

    let site = scraped.site();
    let row = whole_function(&site);
    let truth = row["net_ns"]["median"].as_f64().expect("it was measured") / 1e9;
    let (below, above) = bucket(&metrics, truth);
    assert!((below..=above).contains(&median), "{median} is not in {below} to {above}: {truth}");
    let counted = site["calls"].as_f64().expect("calls are counted");
    assert!(calls.is_some_and(|calls| (200.0..=counted).contains(&calls)), "{calls:?}, {counted}");
}

#[test]
fn estimate_for_all_calls_leaves_out_those_without_seconds() {
    let scraped = Scraped::start("20ms/40ms");
    let prometheus = scraped.prometheus;
    let function = r#"function="serve_prometheus::saxpy""#;
    let all = format!("sum by (function) (gpu_time_calls_total{{{function}}})");
    let per_call = format!("({}) / {all}", estimate(function));
    wait_for("enough was scraped", || {
        let samples = format!("gpu_time_opened_total{{{function},launch=\"\"}}");
        query(prometheus, &samples).filter(|count| *count >= 60.0)
    });
    let per_call = query(prometheus, &per_call).expect("there is an estimate");
    let site = scraped.site();
    let row = whole_function(&site);
    let number = |value: &Value| value.as_f64().expect("it is known");
    // Some of the samples are at the floor.
    let mean = number(&row["net_ns"]["sum"]) / number(&row["measured"]) / 1e9;
    assert!((per_call / mean - 1.0).abs() < 0.2, "{per_call} instead of {mean}");
}
