//! Parses the Chrome trace, and checks it against the rules of the format.

use std::collections::{BTreeMap, HashMap};

use gpu_time_sim_driver::trace::{Command, Trace};
use serde_json::{Value, json};

use super::report::Report;

/// The first process id used for a device.
const FIRST_DEVICE: u64 = 1 << 22;

/// A parsed Chrome trace.
pub struct ChromeTrace {
    pub other: Value,
    /// The calls, the brackets, and the work of opened calls, each in the order of their rows.
    pub calls: Vec<Slice>,
    pub brackets: Vec<Slice>,
    pub works: Vec<Slice>,
    /// The flushes and holds in front of brackets.
    pub preparations: Vec<Slice>,
    /// The function's name for each warm-up call that is shown.
    pub warmups: Vec<String>,
    /// The number of arrows from a call to a bracket.
    pub arrows: usize,
}

/// A slice in a row.
#[derive(Clone, Debug)]
pub struct Slice {
    pub process: String,
    pub row: String,
    pub name: String,
    /// Host time.
    pub begin_ns: u64,
    pub end_ns: u64,
    pub args: Value,
    at: RowId,
}

/// The process id and the thread id that identify a row.
type RowId = (u64, u64);

impl Slice {
    pub fn number(&self, name: &str) -> f64 {
        self.args[name].as_f64().unwrap_or_else(|| panic!("no number `{name}`: {self:?}"))
    }

    pub fn text(&self, name: &str) -> &str {
        self.args[name].as_str().unwrap_or_else(|| panic!("no text `{name}`: {self:?}"))
    }

    pub fn is(&self, mark: &str) -> bool {
        self.args[mark] == true
    }

    /// Returns `true` if the row may belong to the stream with this handle. Not every row names a
    /// stream.
    fn is_on(&self, stream: u64) -> bool {
        !self.row.starts_with("stream 0x") || self.row.starts_with(&format!("stream {stream:#x}"))
    }

    fn holds(&self, ns: u64) -> bool {
        (self.begin_ns..self.end_ns).contains(&ns)
    }
}

fn whole(event: &Value, name: &str) -> u64 {
    event[name].as_u64().unwrap_or_else(|| panic!("`{name}` is not a whole number: {event}"))
}

/// Reads microseconds with at most three decimal places as nanoseconds.
fn nanoseconds(event: &Value, name: &str) -> u64 {
    let micros = event[name].as_f64().unwrap_or_else(|| panic!("no time `{name}`: {event}"));
    let ns = (micros * 1e3).round();
    assert!(micros >= 0.0 && (micros * 1e3 - ns).abs() < 1e-2, "`{name}`: {event}");
    ns as u64
}

impl ChromeTrace {
    /// Parses the trace of process `pid`. Asserts that every row has exactly one name, that the
    /// slices in a row follow or contain each other, and that every arrow goes from a call to one
    /// of its brackets.
    pub fn parse(text: &str, pid: u32) -> ChromeTrace {
        let trace: Value = serde_json::from_str(text).expect("the trace is JSON");
        assert_eq!(trace["displayTimeUnit"], "ns");
        let origin_ns = whole(&trace["otherData"], "origin_ns");
        let (mut processes, mut rows) = (HashMap::new(), HashMap::new());
        let mut slices: Vec<(Slice, String)> = Vec::new();
        let mut warmups = Vec::new();
        let mut ends: BTreeMap<u64, [Option<(RowId, u64)>; 2]> = BTreeMap::new();
        for event in trace["traceEvents"].as_array().expect("a list of events") {
            let at = (whole(event, "pid"), whole(event, "tid"));
            assert!(at.0 == u64::from(pid) || at.0 >= FIRST_DEVICE, "{event}");
            let name = event["name"].as_str().expect("every event has a name").to_owned();
            match event["ph"].as_str() {
                Some("M") => {
                    let value = event["args"]["name"].as_str().map(str::to_owned);
                    let twice = match name.as_str() {
                        "process_name" => processes.insert(at.0, value.expect("a name")),
                        "thread_name" => rows.insert(at, value.expect("a name")),
                        "process_sort_index" | "thread_sort_index" => {
                            whole(&event["args"], "sort_index");
                            None
                        }
                        _ => panic!("{event}"),
                    };
                    assert_eq!(twice, None, "two names: {event}");
                }
                Some("X") => {
                    let begin_ns = origin_ns + nanoseconds(event, "ts");
                    let end_ns = begin_ns + nanoseconds(event, "dur");
                    let (process, row) = (String::new(), String::new());
                    let args = event["args"].clone();
                    let slice = Slice { process, row, name, begin_ns, end_ns, args, at };
                    slices.push((slice, event["cat"].as_str().expect("a category").to_owned()));
                }
                Some("i") => {
                    assert_eq!((&event["cat"], &event["s"]), (&json!("warm-up"), &json!("t")));
                    assert!(nanoseconds(event, "ts") < u64::MAX / 2 && at.0 == u64::from(pid));
                    warmups.push(name);
                }
                Some(end @ ("s" | "f")) => {
                    let is_head = usize::from(end == "f");
                    assert_eq!(event["bp"].as_str(), [None, Some("e")][is_head], "{event}");
                    let place = (at, origin_ns + nanoseconds(event, "ts"));
                    let twice = ends.entry(whole(event, "id")).or_default()[is_head].replace(place);
                    assert_eq!(twice, None, "{event}");
                }
                _ => panic!("{event}"),
            }
        }
        for (slice, _) in &mut slices {
            slice.process = processes.get(&slice.at.0).expect("every process is named").clone();
            slice.row = rows.get(&slice.at).expect("every row is named").clone();
        }
        let of = |category: &str| {
            let its = slices.iter().filter(|(_, its)| its == category);
            its.map(|(slice, _)| slice.clone()).collect::<Vec<_>>()
        };
        let other = trace["otherData"].clone();
        let trace = ChromeTrace {
            other,
            calls: of("call"),
            brackets: of("gpu"),
            works: [of("kernel"), of("memory")].concat(),
            preparations: of("preparation"),
            warmups,
            arrows: ends.len(),
        };
        let shown = [&trace.calls, &trace.brackets, &trace.works, &trace.preparations];
        let shown = shown.map(Vec::len);
        assert_eq!(shown.iter().sum::<usize>(), slices.len());
        trace.assert_nested();
        for [tail, head] in ends.into_values() {
            let (tail, head) = (tail.expect("a tail"), head.expect("a head"));
            let call = innermost(&trace.calls, tail);
            assert_eq!(call.args["call"], innermost(&trace.brackets, head).args["call"]);
        }
        trace
    }

    /// Walks every row in time order, as a viewer does, and asserts that its slices nest.
    fn assert_nested(&self) {
        let mut open: HashMap<RowId, Vec<&Slice>> = HashMap::new();
        let on_streams = self.brackets.iter().chain(&self.works).chain(&self.preparations);
        let mut all: Vec<&Slice> = self.calls.iter().chain(on_streams).collect();
        // Slices that begin at the same time keep their order in the file.
        all.sort_by_key(|slice| slice.begin_ns);
        for slice in all {
            let open = open.entry(slice.at).or_default();
            open.retain(|outer| outer.end_ns > slice.begin_ns);
            for outer in open.iter() {
                assert!(slice.end_ns <= outer.end_ns, "{slice:?} and {outer:?} overlap");
            }
            open.push(slice);
        }
    }

    /// Returns the brackets for one function or launch.
    pub fn of(&self, name: &str) -> Vec<&Slice> {
        self.brackets.iter().filter(|slice| slice.name == format!("scenario::{name}")).collect()
    }

    /// Asserts that the trace has the work that CUPTI recorded, on the same streams and at the same
    /// times as in the model, to within the stated error. Times have an error because another
    /// thread may advance the simulated time while the clocks are read.
    pub fn check_recorded(&self, trace: &Trace) {
        assert_eq!(whole(&self.other, "activities"), self.works.len() as u64);
        // Kernels of the runtime itself belong to no call.
        let of_program = |command: &&Command| !command.name.starts_with("gpu_time_");
        let mut recorded: Vec<_> = trace.recorded().filter(of_program).collect();
        for slice in &self.works {
            let error_ns = whole(&slice.args, "alignment_error_ns");
            let is_it = |command: &&Command| {
                let is_memory = ["copy", "memset"].contains(&command.kind.as_str());
                let name = if is_memory { &slice.name } else { &command.name };
                let sizes = |name: &str| slice.args[name].as_array().map(|_| &slice.args[name]);
                slice.begin_ns.abs_diff(command.start_ns) <= error_ns
                    && slice.end_ns - slice.begin_ns == command.duration_ns
                    && (&slice.name == name && slice.name.starts_with('[') == is_memory)
                    && (is_memory || sizes("grid") == Some(&json!(command.grid)))
                    && (is_memory || sizes("block") == Some(&json!(command.block)))
                    && slice.is_on(command.stream)
                    && slice.process.starts_with(&format!("cuda:{} ", command.device))
            };
            let found = recorded.iter().position(is_it);
            recorded.swap_remove(found.unwrap_or_else(|| panic!("no command: {slice:?}")));
        }
        assert_eq!(recorded, Vec::<&Command>::new());
    }

    /// Returns the call that a slice belongs to.
    pub fn call_of(&self, slice: &Slice) -> &Slice {
        let call = self.calls.iter().find(|call| call.args["call"] == slice.args["call"]);
        call.unwrap_or_else(|| panic!("no call: {slice:?}"))
    }

    /// Asserts that the trace's brackets are the report's event samples.
    pub fn check_report(&self, report: &Report) {
        let number = |name: &str| whole(&self.other, name);
        let rows = report.sites.iter().flat_map(|site| {
            let is_launch = site.scope == "launches";
            // A function with one launch may have no separate row for it.
            let is_bracket = move |launch: bool| launch == is_launch;
            let has_launches = site.series.iter().any(|row| row.launch.is_some());
            let rows = site.series.iter().filter(|row| row.clock == "events");
            rows.filter(move |row| is_bracket(row.launch.is_some()) || !has_launches)
        });
        let measured: u64 = rows.map(|row| row.measured).sum();
        assert_eq!(number("brackets") + number("unplaced"), measured);
        assert_eq!(self.brackets.len() as u64 + number("dropped"), number("brackets"));
    }

    /// Asserts that every bracket is placed as in the model, within the bracket's stated error.
    /// Brackets on the same device use the same clock, so relative to each other they must be ten
    /// times as accurate.
    pub fn check_model(&self, trace: &Trace) {
        let mut pairs: Vec<_> = trace.elapsed();
        pairs.retain(|pair| pair.start.stream == pair.stop.stream);
        let mut offs: HashMap<u64, (f64, f64)> = HashMap::new();
        for slice in &self.brackets {
            let error_ns = slice.number("alignment_error_ns");
            assert!((1_000.0..20_000.0).contains(&error_ns), "{slice:?}");
            // As the model has it, with what others added.
            let added_ns = slice.args["added_ns"].as_f64().unwrap_or(0.0);
            let raw_ns = slice.number("raw_ns") + added_ns;
            let off_ns = |ns: u64, model_ns: u64| (ns as f64 - model_ns as f64).abs();
            let is_it = |pair: &gpu_time_sim_driver::trace::Elapsed<'_>| {
                // Compares the stream last, because comparing its name is slow.
                (pair.reported_ns as f64 - raw_ns).abs() <= 1.0 + raw_ns * 1e-6
                    && off_ns(slice.begin_ns, pair.start.end_ns) <= error_ns
                    && off_ns(slice.end_ns, pair.stop.end_ns) <= error_ns + 1.0
                    && slice.is_on(pair.start.stream)
            };
            let found = pairs.iter().position(is_it);
            let pair = pairs.swap_remove(found.unwrap_or_else(|| panic!("no pair: {slice:?}")));
            let off = slice.begin_ns as f64 - pair.start.end_ns as f64;
            let (least, most) = offs.entry(slice.at.0).or_insert((off, off));
            (*least, *most) = (least.min(off), most.max(off));
        }
        for (least, most) in offs.into_values() {
            assert!(most - least < 250.0, "off by {least} to {most}");
        }
    }
}

/// Returns the innermost slice in a row at this time.
fn innermost(slices: &[Slice], (at, ns): (RowId, u64)) -> &Slice {
    let around = slices.iter().filter(|slice| slice.at == at && slice.holds(ns));
    let shortest = around.min_by_key(|slice| slice.end_ns - slice.begin_ns);
    shortest.unwrap_or_else(|| panic!("no slice at {at:?}, {ns}"))
}
