//! Made-up programs whose reports are for viewing. A program's rows, call tree and phases are
//! computed from the same paths, so that all totals agree.

use std::collections::BTreeMap;

use fastrand::Rng;
use gpu_time_report::{
    CacheState, Clock, Device, Kernel, KernelTimes, Measure, Node, Series, Site, Snapshot, Source,
    value,
};

use super::pieces::{Made, coverage, made_up_gpu, report, row, site};

/// The number of passes that each program makes.
const PASSES: f64 = 20_000.0;
/// The maximum number of samples of a row. With more calls, its total is an estimate.
const MOST: u64 = 20_000;
/// The share of a device's time that goes to kernels outside of annotated functions.
const NOT_ANNOTATED: f64 = 0.04;

const GEMM: &str = "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, \
    int, int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::MainloopSm90TmaGmmaWarpSpecialized<4, \
    cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> > >, cute::tuple<cute::C<TILE>, cute::C<256>, cute::C<64> >, \
    cutlass::half_t> > >(cutlass::gemm::kernel::GemmUniversal<>::Params)";

/// A program, on one or several devices.
struct Program {
    paths: Vec<Path>,
    /// Recorded calls, or events without any fed sample.
    source: Source,
    streams: u32,
    /// Each device's part of the work, and the share of its time for annotated functions.
    devices: Vec<(f64, f64)>,
}

/// A path of the call tree, with means per call.
struct Path {
    function: &'static str,
    parent: Option<usize>,
    per_pass: f64,
    /// The GPU time of the function's own kernel.
    own_ns: f64,
    /// The share of the span for which the GPU had nothing to do.
    waited: f64,
    /// The host time per call, as a multiple of the span.
    host: f64,
}

/// Returns all programs by name.
pub fn all() -> Vec<(&'static str, Snapshot)> {
    let model = |devices| Program { paths: model(), source: Source::Opened, streams: 1, devices };
    let mut nested = model(vec![(1.0, 0.34)]).report();
    nested.push(tokenizer());
    let starved = Program { source: Source::Events, ..model(vec![(1.0, 0.34)]) };
    let server =
        Program { paths: server(), source: Source::Opened, streams: 4, devices: vec![(1.0, 0.94)] };
    vec![
        ("nested", nested.snapshot()),
        ("two-devices", model(vec![(0.3, 0.34), (0.7, 0.8)]).report().snapshot()),
        ("starved", starved.report().snapshot()),
        ("busy-server", server.report().snapshot()),
    ]
}

/// Builds a small model, whose host is too slow for its GPU.
fn model() -> Vec<Path> {
    let path = |function, parent, own_ns, waited| Path {
        function,
        parent,
        per_pass: if parent.is_some() { 24.0 } else { 1.0 },
        own_ns,
        waited,
        host: 1.1,
    };
    vec![
        path("model::forward", None, 9_000.0, 0.74),
        path("model::layer", Some(0), 700.0, 0.7),
        path("model::attention", Some(1), 5_800.0, 0.3),
        path("model::rope", Some(2), 900.0, 0.0),
        path("model::norm", Some(1), 800.0, 0.6),
        path("model::mlp", Some(1), 4_900.0, 0.02),
        path("model::norm", Some(5), 500.0, 0.0),
        Path { per_pass: 1.0, ..path("model::norm", Some(0), 800.0, 0.0) },
    ]
}

/// Builds a server with work on several streams, where calls wait for those of other requests.
fn server() -> Vec<Path> {
    let path = |function, parent, per_pass, own_ns| Path {
        function,
        parent,
        per_pass,
        own_ns,
        waited: 0.01,
        host: 0.2,
    };
    vec![
        path("server::request", None, 1.0, 4_000.0),
        path("server::prefill", Some(0), 1.0, 410_000.0),
        path("server::decode", Some(0), 48.0, 26_000.0),
        path("server::sample", Some(2), 48.0, 5_000.0),
        path("server::evict", None, 0.1, 90_000.0),
    ]
}

/// Builds a function on the CPU.
fn tokenizer() -> Site {
    let mut random = Rng::with_seed(3);
    let made = Made { mean_ns: 48_000.0, samples: MOST, wall_ns: 20e9, bias_ns: 0.0, starved: 0.0 };
    let row = row(&mut random, 0, &made, CacheState::AsFound, None, Measure::Span);
    let row = value!(Series { device: "host".to_owned(), clock: Clock::Host, queued: 0, ..row });
    site("tokenizer::encode".to_owned(), 9, vec![row])
}

/// The parts of a report.
struct Report {
    devices: Vec<Device>,
    sites: Vec<Site>,
    tree: Vec<Node>,
    wall_ns: f64,
}

impl Report {
    fn push(&mut self, site: Site) {
        self.devices.push(Device::host());
        self.sites.push(site);
    }

    fn snapshot(self) -> Snapshot {
        report(self.devices, self.sites, self.wall_ns).with_tree(self.tree)
    }
}

impl Program {
    fn report(&self) -> Report {
        let (part, attributed) = self.devices[0];
        let wall_ns = part * self.paths.iter().map(Path::own_total_ns).sum::<f64>() / attributed;
        let devices = self.devices.iter().enumerate().map(|(at, &(_, attributed))| {
            value!(Device {
                id: format!("cuda:{at}"),
                coverage: Some(coverage(attributed + NOT_ANNOTATED, attributed)),
                ..made_up_gpu()
            })
        });
        let functions = self.functions();
        let sites = functions.iter().enumerate().map(|(at, name)| self.site(at, name, wall_ns));
        Report { devices: devices.collect(), sites: sites.collect(), tree: self.tree(), wall_ns }
    }

    /// Returns the functions in the order of their first paths.
    fn functions(&self) -> Vec<&'static str> {
        let mut functions = Vec::new();
        for path in &self.paths {
            if !functions.contains(&path.function) {
                functions.push(path.function);
            }
        }
        functions
    }

    /// Returns the GPU time per call of a path, including the paths below it.
    fn busy_ns(&self, at: usize) -> f64 {
        self.kernels(at).values().map(|[count, each_ns]| count * each_ns).sum()
    }

    /// Returns the time per call of a path. If events time the call, it includes the waits.
    fn time_ns(&self, at: usize) -> f64 {
        match self.source {
            Source::Events => self.busy_ns(at) / (1.0 - self.paths[at].waited),
            _ => self.busy_ns(at),
        }
    }

    /// Returns the number and the time of each kernel per call of a path.
    fn kernels(&self, at: usize) -> BTreeMap<String, [f64; 2]> {
        let path = &self.paths[at];
        let mut kernels = BTreeMap::from([(path.kernel(), [1.0, path.own_ns])]);
        let inner =
            (at + 1..self.paths.len()).filter(|inner| self.paths[*inner].parent == Some(at));
        for inner in inner {
            let calls = self.paths[inner].per_pass / path.per_pass;
            for (name, [count, each_ns]) in self.kernels(inner) {
                kernels.entry(name).or_insert([0.0, each_ns])[0] += calls * count;
            }
        }
        kernels
    }

    fn tree(&self) -> Vec<Node> {
        let functions = self.functions();
        let node = |(at, path): (usize, &Path)| {
            let (calls, is_opened) = (path.per_pass * PASSES, self.source == Source::Opened);
            let inner = (at + 1..self.paths.len()).filter(|i| self.paths[*i].parent == Some(at));
            let inner_ns: f64 =
                inner.map(|i| self.time_ns(i) * self.paths[i].per_pass / path.per_pass).sum();
            let self_ns = (self.time_ns(at) - inner_ns) * calls;
            let span_ns = self.busy_ns(at) / (1.0 - path.waited);
            let known = |value: f64| is_opened.then_some(value);
            value!(Node {
                name: path.function.to_owned(),
                site: functions.iter().position(|name| *name == path.function),
                parent: path.parent,
                recorded: (calls as u64).min(MOST),
                calls,
                self_ns,
                self_error_ns: Some(0.01 * self_ns),
                self_ns_by_device: self
                    .devices
                    .iter()
                    .enumerate()
                    .map(|(device, (part, _))| (format!("cuda:{device}"), part * self_ns))
                    .collect(),
                upper_bound: !is_opened,
                per_call: Some(value!(PerCall {
                    busy_ns: self.time_ns(at),
                    span_ns,
                    waited_ns: known(span_ns * path.waited),
                    host_ns: known(span_ns * path.host),
                    kernels: known(self.kernels(at).values().map(|[count, _]| count).sum()),
                })),
                ..Node::of(self.source)
            })
        };
        self.paths.iter().enumerate().map(node).collect()
    }

    /// Builds a function with a row for each device.
    fn site(&self, at: usize, name: &str, wall_ns: f64) -> Site {
        let mut random = Rng::with_seed(11 + at as u64);
        let of_function: Vec<usize> =
            (0..self.paths.len()).filter(|path| self.paths[*path].function == name).collect();
        let sum = |of: &dyn Fn(usize) -> f64| of_function.iter().map(|path| of(*path)).sum::<f64>();
        let calls = sum(&|path| self.paths[path].per_pass) * PASSES;
        let total_ns = sum(&|path| self.time_ns(path) * self.paths[path].per_pass) * PASSES;
        let rows = self.devices.iter().enumerate().map(|(device, (part, _))| {
            let samples = ((calls * part) as u64).min(MOST);
            let starved = if self.source == Source::Events { 1.0 } else { 0.0 };
            let mean_ns = total_ns / calls;
            let made = Made { mean_ns, samples, wall_ns, bias_ns: 0.0, starved };
            let row = row(&mut random, at, &made, CacheState::AsFound, None, Measure::Span);
            let row = value!(Series {
                device: format!("cuda:{device}"),
                estimated_total_ns: Some(part * total_ns),
                estimated_total_error_ns: Some(0.002 * part * total_ns),
                ..row
            });
            if self.source == Source::Opened { self.opened(of_function[0], row) } else { row }
        });
        let site = site(name.to_owned(), 20 + 9 * at as u32, rows.collect());
        let unsampled = calls as u64 - site.timed.min(calls as u64);
        let calls = site.calls + unsampled;
        value!(Site { calls, skipped: unsampled, unsampled, ..site })
    }

    /// Turns a row's samples into recorded calls of the path.
    fn opened(&self, at: usize, row: Series) -> Series {
        let (path, opened) = (&self.paths[at], row.measured);
        let busy = row.net_ns;
        let span = 1.0 / (1.0 - path.waited);
        let scaled = |by: f64| busy.map(|stats| stats.map(|ns| ns * by));
        let each = self.kernels(at);
        let whole_ns: f64 = each.values().map(|[count, each_ns]| count * each_ns).sum();
        let kernel = |(name, [count, each_ns]): (&String, &[f64; 2])| {
            value!(Kernel {
                name: name.clone(),
                grid: [132, 1, 1],
                block: [256, 1, 1],
                registers: 96,
                shared_bytes: 49_152,
                per_call: *count,
                count: (count * opened as f64) as u64,
                time_ns: scaled(each_ns / whole_ns),
                total_ns: count * each_ns * opened as f64,
                share: count * each_ns / whole_ns,
            })
        };
        let mut kernels: Vec<Kernel> = each.iter().map(kernel).collect();
        kernels.sort_by(|one, other| other.total_ns.total_cmp(&one.total_ns));
        let times = value!(KernelTimes {
            opened,
            busy_ns: busy,
            self_busy_ns: scaled(path.own_ns / whole_ns),
            span_ns: scaled(span),
            gaps_ns: scaled(span - 1.0),
            kernels_per_call: Some(each.values().map(|[count, _]| count).sum()),
            streams: Some(self.streams),
            kernels,
            ..KernelTimes::default()
        });
        let (clock, host_ns) = (Clock::Kernels, scaled(span * path.host));
        let [measured, fed, starved, queued] = [0; 4];
        let kernel_times = Some(times);
        value!(Series { clock, measured, fed, starved, queued, host_ns, kernel_times, ..row })
    }
}

impl Path {
    fn own_total_ns(&self) -> f64 {
        self.own_ns * self.per_pass * PASSES
    }

    /// Returns the name of the function's own kernel.
    fn kernel(&self) -> String {
        match self.function.rsplit("::").next() {
            Some("mlp") => GEMM.replace("TILE", "128"),
            Some("attention" | "prefill") => GEMM.replace("TILE", "64"),
            name => format!("{}_bf16", name.unwrap_or_default()),
        }
    }
}
