//! What the JSON report says, with the figures that follow from it.

use gpu_time_report::{Node, Snapshot, printable};
use serde_json::Value;

use super::figure::{Figure, Path, Row, Rows};

/// A JSON report.
pub struct Report(Value);

/// The functions' own times, by index.
struct Own {
    /// According to the call tree or, without one, to the rows. `None` for functions without a share.
    ns: Vec<Option<f64>>,
    /// According to the rows.
    rows_ns: Vec<f64>,
    /// All GPU time.
    all_ns: f64,
}

impl Report {
    pub fn of(snapshot: &Snapshot) -> Report {
        Report(serde_json::from_str(&snapshot.to_json()).expect("a JSON report"))
    }

    pub fn sites(&self) -> &[Value] {
        self.0["sites"].as_array().expect("functions")
    }

    /// Returns the number of phases on all devices.
    pub fn phases(&self) -> u64 {
        let devices = self.0["devices"].as_array().expect("devices").iter();
        devices.filter_map(|device| device["coverage"]["windows"].as_u64()).sum()
    }

    /// Returns the paths of the call tree, of which there may be none.
    pub fn tree(&self) -> &[Value] {
        self.0["tree"].as_array().map_or(&[], Vec::as_slice)
    }

    pub fn series(&self, site: usize) -> &[Value] {
        self.sites()[site]["series"].as_array().expect("series")
    }

    /// Returns the function whose name a label begins with, and the rest of the label.
    pub fn named(&self, label: &str) -> Option<(usize, String)> {
        let names = self.sites().iter().map(|site| printable(text(&site["name"]))).enumerate();
        let found = names.filter_map(|(at, name)| {
            let rest = label.strip_prefix(&*name)?;
            let is_end = ["", " [", " (", " ×"].iter().any(|end| match *end {
                "" => rest.is_empty(),
                end => rest.starts_with(end),
            });
            is_end.then(|| (name.len(), at, rest.trim_start().to_owned()))
        });
        found.max().map(|(_, at, rest)| (at, rest))
    }

    /// Returns the series of a function's calls with this key at this place: where and in what cache state, if the table has
    /// columns for them. Rows that have been found are `taken`.
    pub fn head(&self, site: usize, key: Option<&str>, place: &[String; 2], taken: &Rows) -> usize {
        let is_it = |series: &Value| series["launch"].is_null() && has_key(series, key);
        self.only(site, place, taken, is_it)
    }

    /// Returns the series of the launch with this label.
    pub fn launch(
        &self,
        site: usize,
        label: &str,
        key: Option<&str>,
        place: &[String; 2],
        taken: &Rows,
    ) -> usize {
        let is_it = |series: &Value| {
            let Some([short, long]) = launch_labels(series) else { return false };
            let with_key = |name: &str| match label.strip_prefix(name) {
                Some("") => has_key(series, key),
                Some(rest) => {
                    let own =
                        rest.trim_start().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
                    own.is_some() && has_key(series, own)
                }
                None => false,
            };
            with_key(&short) || with_key(&long)
        };
        self.only(site, place, taken, is_it)
    }

    /// Returns the series of a line of CSV, by its launch, key, device, clock and cache state.
    pub fn line(&self, site: usize, [launch, key, of @ ..]: [&str; 5], taken: &Rows) -> usize {
        let is_it = |series: &Value| {
            let label = launch_labels(series).map_or(String::new(), |[_, long]| long);
            let names = ["device", "clock", "cache"].map(|name| text(&series[name]));
            label == launch
                && has_key(series, Some(key).filter(|key| !key.is_empty()))
                && names == of
        };
        self.only(site, &Default::default(), taken, is_it)
    }

    fn only(
        &self,
        site: usize,
        [on, cache]: &[String; 2],
        taken: &Rows,
        is_it: impl Fn(&Value) -> bool,
    ) -> usize {
        let is_here = |series: &Value| {
            (on.is_empty() || *on == place(series))
                && (cache.is_empty() || *cache == text(&series["cache"]))
        };
        let all = self.series(site).iter().enumerate();
        let found = all.filter(|(at, series)| {
            is_it(series) && is_here(series) && !taken.contains_key(&(site, Some(*at)))
        });
        let found: Vec<usize> = found.map(|(at, _)| at).collect();
        let name = &self.sites()[site]["name"];
        *found.first().unwrap_or_else(|| panic!("no row of {name} is left for {on:?}, {cache:?}"))
    }

    /// Returns the rows of all series, and one for each function with its calls.
    pub fn rows(&self) -> Rows {
        let mut rows = Rows::new();
        let own = self.own();
        for (at, site) in self.sites().iter().enumerate() {
            let calls = Some(Figure::exact(number(&site["calls"]).expect("calls")));
            rows.insert((at, None), Row { calls, ..Row::default() });
            for (index, series) in self.series(at).iter().enumerate() {
                rows.insert((at, Some(index)), self.row(at, series, &own));
            }
        }
        rows
    }

    /// Returns the names and the figures of the time beside that of functions.
    pub fn others(&self) -> Vec<(String, Row)> {
        let all_ns = self.own().all_ns;
        let row = |name: &str, ns| {
            let [own, total] = [ns, ns].map(|ns| Some(Figure::exact(ns)));
            (
                name.to_owned(),
                Row { own, total, share: Some(Figure::exact(ns / all_ns)), ..Row::default() },
            )
        };
        let is_of_helpers = |node: &&Value| node["site"].is_null() && !is_in_phases(node);
        let helpers_ns: f64 = self.tree().iter().filter(is_of_helpers).map(self_ns).sum();
        let helpers = (helpers_ns > 0.0).then(|| row(Node::HELPER_THREADS, helpers_ns));
        let found = self.tree().iter().filter(|node| is_in_phases(node) && self_ns(node) > 0.0);
        let found = found.map(|node| row(text(&node["name"]), self_ns(node)));
        helpers.into_iter().chain(found).collect()
    }

    fn row(&self, at: usize, series: &Value, own: &Own) -> Row {
        let is_recorded = series["clock"] == "kernels";
        let samples = if is_recorded { &series["opened"] } else { &series["measured"] };
        let median = shown(series).map(|stats| {
            let is_unknown = series["inner_brackets"].is_null()
                && 2.0 * number(&series["nested"]).unwrap()
                    > number(&series["measured"]).unwrap() + 1.0;
            let is_bound = series["upper_bound"] == true || is_unknown;
            let marks = Some(if is_bound { "≤" } else { "" }.to_owned());
            Figure { marks, ..Figure::exact(number(&stats["median"]).unwrap()) }
        });
        let paths = || self.tree().iter().filter(|node| node["site"] == at && self_ns(node) > 0.0);
        let heads: Vec<&Value> = heads(self.series(at)).filter(|head| is_gpu_time(head)).collect();
        let is_first = heads.first().is_some_and(|head| std::ptr::eq(*head, series));
        // The parts of longer calls belong to no sample.
        let is_in_parts =
            is_first && own.ns[at].is_some_and(|ns| ns > 0.0) && own.rows_ns[at] == 0.0;
        let mut total = shown(series).and_then(|_| Some(sum(series)? * self.outer(at, series)));
        if total.is_none() && is_in_parts && paths().count() == 1 {
            total = paths().map(|node| number(&node["inclusive_ns"]).unwrap()).next();
        }
        let share = own.ns[at].and_then(|ns| match ns {
            _ if is_in_parts => Some(ns / own.all_ns),
            _ if !is_gpu_time(series) || series["graph"] == true => None,
            0.0 => sum(series).map(|_| 0.0),
            _ if own.rows_ns[at] == 0.0 => None,
            _ => Some(self.own_sum(at, series)? / own.rows_ns[at] * ns / own.all_ns),
        });
        let own_ns = share.map(|share| (share * own.all_ns).min(total.unwrap_or(f64::INFINITY)));
        Row {
            samples: number(samples).map(Figure::exact),
            median,
            own: own_ns.map(Figure::exact),
            total: total.map(Figure::exact),
            share: share.map(Figure::exact),
            ..Row::default()
        }
    }

    fn own(&self) -> Own {
        let rows_ns = |at: usize| {
            let heads =
                heads(self.series(at)).filter(|head| is_gpu_time(head) && head["graph"] == false);
            heads.filter_map(|head| self.own_sum(at, head)).fold(0.0, |sum, ns| sum + ns)
        };
        let rows_ns: Vec<f64> = (0..self.sites().len()).map(rows_ns).collect();
        let of_calls = || self.tree().iter().filter(|node| !is_in_phases(node));
        let by_rows = of_calls().all(|node| self_ns(node) == 0.0);
        let ns = |(at, rows_ns): (usize, &f64)| {
            let mut paths = of_calls().filter(|node| node["site"] == at).peekable();
            match paths.peek() {
                _ if by_rows => (*rows_ns > 0.0).then_some(*rows_ns),
                Some(_) => Some(paths.map(self_ns).sum()),
                None => None,
            }
        };
        let ns: Vec<Option<f64>> = rows_ns.iter().enumerate().map(ns).collect();
        let beside = self.tree().iter().filter(|node| node["site"].is_null());
        let all_ns = ns.iter().flatten().chain(&beside.map(self_ns).collect::<Vec<_>>()).sum();
        Own { ns, rows_ns, all_ns }
    }

    /// Returns the own part of the time of a series, according to its samples.
    fn own_sum(&self, at: usize, series: &Value) -> Option<f64> {
        let [own_ns, _, all_ns] = self.of_paths(at);
        let of_samples = || {
            let [busy, own] = ["busy_ns", "self_busy_ns"].map(|name| number(&series[name]["sum"]));
            Some(own? / busy.filter(|busy| *busy > 0.0 && series["clock"] == "kernels")?)
        };
        let part = match all_ns > 0.0 {
            true if has_others(series) => own_ns / all_ns,
            true => 1.0,
            false => of_samples().unwrap_or(1.0),
        };
        Some(sum(series)? * part)
    }

    /// Returns the part of a row's time that is not also inside another call of the same function.
    fn outer(&self, at: usize, series: &Value) -> f64 {
        let [_, outer_ns, all_ns] = self.of_paths(at);
        let on_gpu = self.series(at).iter().filter(|series| series["clock"] != "host");
        let is_only = on_gpu.filter(|series| has_others(series)).count() == 1;
        let is_here = series["clock"] != "host" && has_others(series);
        if is_only && is_here && all_ns > 0.0 { outer_ns / all_ns } else { 1.0 }
    }

    /// Returns the self time of a function's paths, the time of their calls outside of its other calls, and that of all.
    fn of_paths(&self, at: usize) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for node in self.tree().iter().filter(|node| node["site"] == at) {
            let mut callers =
                std::iter::successors(self.caller(node), |caller| self.caller(caller));
            let is_inside = callers.any(|caller| caller["site"] == at);
            let mean = number(&node["per_call"]["busy_ns"]).unwrap_or_default();
            let ns = mean * number(&node["calls"]).unwrap();
            let outer_ns = if is_inside { 0.0 } else { ns };
            [self_ns(node), outer_ns, ns].iter().zip(&mut sums).for_each(|(ns, sum)| *sum += ns);
        }
        sums
    }

    fn caller(&self, node: &Value) -> Option<&Value> {
        node["parent"].as_u64().map(|parent| &self.tree()[parent as usize])
    }

    /// Returns the names, depths and figures of the paths.
    pub fn paths(&self) -> Vec<Path> {
        let is_bound = |node: &Value| node["upper_bound"] == true;
        let path = |(at, node): (usize, &Value)| {
            let callers = std::iter::successors(Some(node), |node| self.caller(node));
            let inside = self.tree().iter().filter(|other| {
                let mut callers = std::iter::successors(Some(*other), |node| self.caller(node));
                callers.any(|caller| std::ptr::eq(caller, &self.tree()[at]))
            });
            let figure = |name: &str, is_bound: bool| {
                let marks = Some(if is_bound { "≤" } else { "" }.to_owned());
                Some(Figure { marks, ..Figure::exact(number(&node[name])?) })
            };
            let error = number(&node["self_error_ns"]).unwrap_or(f64::NAN);
            let row = Row {
                share: Some(Figure::exact(number(&node["share"]).unwrap())),
                own: figure("self_ns", is_bound(node)),
                own_error: (error != 0.0).then(|| Figure::exact(error)),
                total: figure("inclusive_ns", inside.into_iter().any(is_bound)),
                calls: (!node["per_call"].is_null())
                    .then(|| Figure::exact(number(&node["calls"]).unwrap())),
                ..Row::default()
            };
            let name = printable(text(&node["name"]));
            Path { name, depth: callers.count() - 1, row }
        };
        self.tree().iter().enumerate().map(path).collect()
    }
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

fn self_ns(node: &Value) -> f64 {
    number(&node["self_ns"]).expect("a self time")
}

/// Returns `true` if only phases found the work.
fn is_in_phases(node: &Value) -> bool {
    node["source"] == "windows"
}

fn heads(series: &[Value]) -> impl Iterator<Item = &Value> {
    series.iter().filter(|series| series["launch"].is_null())
}

fn is_gpu_time(series: &Value) -> bool {
    series["clock"] == "events" || series["clock"] == "kernels"
}

/// Returns `true` if the time of a series may have that of other functions inside.
fn has_others(series: &Value) -> bool {
    series["clock"] != "events" || series["measure"] == "span"
}

fn shown(series: &Value) -> Option<&Value> {
    [&series["net_ns"], &series["raw_ns"]].into_iter().find(|stats| !stats.is_null())
}

fn sum(series: &Value) -> Option<f64> {
    let values = [&series["estimated_total_ns"], &series["net_sum_ns"], &series["raw_ns"]["sum"]];
    values.into_iter().find_map(number)
}

fn has_key(series: &Value, key: Option<&str>) -> bool {
    series["key"].as_str().map(printable).as_deref() == key
}

/// Returns the labels of a launch without and with its index.
fn launch_labels(series: &Value) -> Option<[String; 2]> {
    let launch = series["launch"].as_object()?;
    let name = printable(text(&launch["name"]));
    let [index, line] = ["index", "line"].map(|of| launch[of].as_u64().unwrap_or_default());
    Some([format!("{name}, line {line}"), format!("{name} {index}, line {line}")])
}

/// Returns the place of a series as the table shows it.
fn place(series: &Value) -> String {
    let device = match text(&series["device"]) {
        "cuda:?" => "–",
        device => device,
    };
    match text(&series["clock"]) {
        "events" => device.to_owned(),
        "host" => "host".to_owned(),
        clock => format!("{device} {clock}"),
    }
}
