//! Debian's Prometheus scrapes the example `serve_prometheus`, on the simulated driver, and answers what
//! the report says.
//!
//! Needs `prometheus` on the path: `apt-get install --no-install-recommends prometheus`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use gpu_time_sim_driver::SimDriver;
use serde_json::Value;

/// Nothing here takes that long, unless it hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A process that is ended with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(command: &mut Command) -> Process {
    let child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    Process(child)
}

/// Builds the example with the features that it is to have here.
fn example() -> PathBuf {
    // Beside this test, where what it is built of lies already.
    let target =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", target);
    cargo.args(["build", "--locked", "--quiet", "--features", "metrics,signals"]);
    cargo.args(["--example", "serve_prometheus"]);
    assert!(cargo.status().expect("cargo runs").success(), "{cargo:?}");
    target.join("debug/examples/serve_prometheus")
}

/// An address on this machine that nobody listens on.
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

/// What Prometheus says of an expression: one number, or none yet.
fn query(prometheus: SocketAddr, expression: &str) -> Option<f64> {
    let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let answer = get(prometheus, &format!("/api/v1/query?query={encoded}")).ok()?;
    let answer: Value = serde_json::from_str(&answer).ok()?;
    let results = answer["data"]["result"].as_array()?;
    assert!(results.len() <= 1, "{expression}: {answer}");
    results.first()?["value"][1].as_str()?.parse().ok()
}

/// The first answer that is as it should be.
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

/// The bounds of the bucket that a time is in, in seconds, as a scrape shows them.
fn bucket(metrics: &str, seconds: f64) -> (f64, f64) {
    let lines = metrics.lines().filter(|line| line.starts_with("gpu_time_seconds_bucket{"));
    let bounds = lines.filter_map(|line| line.split_once("le=\"")?.1.split_once('"'));
    let bounds: Vec<f64> = bounds.filter_map(|(bound, _)| bound.parse().ok()).collect();
    let below = bounds.iter().copied().filter(|&bound| bound < seconds).fold(0.0, f64::max);
    let above = bounds.iter().copied().filter(|&bound| bound >= seconds).fold(f64::MAX, f64::min);
    assert!((1e-6..10.0).contains(&below) && above <= 2.0 * below, "{below} to {above}");
    (below, above)
}

#[test]
fn prometheus_answers_with_the_median_of_the_report() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let report = dir.path().join("report.json");
    let sim = SimDriver::install(dir.path().join("driver")).expect("it is installed");
    let example_address = free_address();
    let mut command = Command::new(example());
    command.arg(example_address.to_string()).stdout(Stdio::null());
    command.env("GPU_TIME_REPORT", format!("json:{}", report.display()));
    let mut example = start(sim.apply(&mut command));

    let config = dir.path().join("prometheus.yml");
    let scrape = format!(
        "scrape_configs: [{{job_name: test, scrape_interval: 1s, static_configs: \
         [{{targets: ['{example_address}']}}]}}]\n"
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
    let metrics = get(example_address, "/metrics").expect("it is served");

    // By the signal it reports and ends.
    let ended = Command::new("kill").args(["-TERM", &example.0.id().to_string()]).status();
    assert!(ended.expect("there is a `kill`").success());
    let status = example.0.wait().expect("it ends");
    assert_eq!(status.signal(), Some(15));
    let report = std::fs::read_to_string(&report).expect("it reported before it ended");
    let report: Value = serde_json::from_str(&report).expect("the report is JSON");
    let sites = report["sites"].as_array().expect("there are sites");
    let site = sites.iter().find(|site| site["name"] == "serve_prometheus::saxpy");
    let site = site.expect("it was called");
    let rows = site["series"].as_array().expect("there are series");
    let row = rows.iter().find(|row| row["launch"].is_null()).expect("the function's");
    let truth = row["net_ns"]["median"].as_f64().expect("it was measured") / 1e9;
    let (below, above) = bucket(&metrics, truth);
    assert!((below..=above).contains(&median), "{median} is not in {below} to {above}: {truth}");
    let counted = site["calls"].as_f64().expect("calls are counted");
    assert!(calls.is_some_and(|calls| (200.0..=counted).contains(&calls)), "{calls:?}, {counted}");
}
