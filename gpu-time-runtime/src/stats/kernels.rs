//! The GPU work of opened calls: the figures of each call, and the kernels of a series.

use std::collections::{BTreeMap, HashMap};
use std::ptr;

use crate::types::activity::GpuWork;
use crate::types::device::DeviceId;
use crate::types::stream_id::StreamId;
use gpu_time_report::{self as report, Distribution, ElsewhereReason, Stats};

/// The maximum number of entries for kernels in a series, besides the one that further kernels share.
const MAX_KERNELS: usize = 255;

/// The GPU work of one opened call of a function, including the functions that it called.
#[derive(Default)]
pub(crate) struct CallFigures<'a> {
    /// The time during which at least one of its kernels, copies or memsets ran.
    pub busy_ns: u64,
    /// `busy_ns` without the time in which work of annotated functions inside ran.
    pub self_busy_ns: u64,
    /// The part of the outermost function's busy time that is attributed to this function alone, by
    /// device. Each instant of a device is attributed to one function, even while work of several
    /// functions runs.
    pub own_ns: BTreeMap<DeviceId, u64>,
    /// The time from the first start to the last end of its work.
    pub span_ns: u64,
    /// The part of the span in which the GPU waited for work that the host had not enqueued or had only just
    /// enqueued.
    pub waited_ns: u64,
    /// The number of streams that the work ran on.
    pub streams: u32,
    /// The stream that the function names.
    pub stream: Option<StreamId>,
    /// The function's own work comes first.
    pub works: &'a [WorkTime],
    /// The number of its own works.
    pub own_works: usize,
}

/// One run of a kernel, copy or memset.
pub(crate) struct WorkTime {
    pub work: &'static GpuWork,
    pub ns: u64,
    /// The stream that it was enqueued on, if known.
    pub stream: Option<StreamId>,
    /// The events of the function that enqueued it would not bracket its launch.
    pub is_after_stop: bool,
}

impl CallFigures<'_> {
    /// Returns the reason why the function's events would not bracket the work at this index, or `None` if they
    /// would.
    fn elsewhere(&self, index: usize, work: &WorkTime) -> Option<ElsewhereReason> {
        let streams = self.stream.zip(work.stream);
        if streams.is_some_and(|(named, stream)| !named.names(stream)) {
            return Some(ElsewhereReason::OtherStream);
        }
        let is_after_stop = work.is_after_stop && index < self.own_works;
        is_after_stop.then_some(ElsewhereReason::AfterStop)
    }
}

/// The opened calls of a series. Percentiles are of these calls. Means are of all calls: each opened call is weighted by
/// the number of calls that it represents, because the first one is opened in any case, and often does more than the
/// others.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenedCalls {
    /// The number of calls that they represent.
    represented: f64,
    busy: Distribution,
    self_busy: Distribution,
    span: Distribution,
    gaps: Distribution,
    /// The number of kernel runs in the represented calls, without copies and memsets.
    kernels: f64,
    streams: u32,
    /// The number of CUPTI records without times.
    zero_times: u64,
    works: Works,
    elsewhere: WorksElsewhere,
}

/// Times of each kernel, copy and memset, in bounded memory.
#[derive(Clone, Debug, Default)]
struct Works {
    /// Kernels with one launch configuration, by the address of their description, and, by the address of the
    /// name, copies, memsets and kernels whose launch configurations are combined. All descriptions are interned,
    /// so equal ones have the same address. [`OTHERS`] is the rest.
    entries: HashMap<usize, (GpuWork, WorkTimes)>,
    /// There is no more room, and no kernel has two launch configurations.
    is_exhausted: bool,
}

/// Work that events would not bracket, by the address of the name, or [`OTHERS`], and the reason.
#[derive(Clone, Debug, Default)]
struct WorksElsewhere(HashMap<(usize, ElsewhereReason), (&'static str, ElsewhereTimes)>);

/// The key of the work for which there is no room. Nothing has this address.
const OTHERS: usize = 0;

#[derive(Clone, Debug, Default)]
struct WorkTimes {
    times: Distribution,
    /// The number of runs in the represented calls, and their time.
    represented: f64,
    represented_ns: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct ElsewhereTimes {
    count: u64,
    ns: u64,
}

fn address<T: ?Sized>(of: &'static T) -> usize {
    ptr::from_ref(of).addr()
}

impl Works {
    /// Returns the times of the entry that this work belongs to.
    fn of(&mut self, work: &'static GpuWork) -> &mut WorkTimes {
        let (shape, name) = (address(work), address(work.name));
        let known = [shape, name].into_iter().find(|key| self.entries.contains_key(key));
        let key = known.unwrap_or_else(|| {
            if work.name == report::Kernel::OTHER || !self.has_room() {
                OTHERS
            } else if work.has_shape() && !self.entries.contains_key(&name) {
                shape
            } else {
                name
            }
        });
        let described = || match key {
            OTHERS => GpuWork::shapeless(report::Kernel::OTHER),
            key if key == shape => *work,
            _ => GpuWork::shapeless(work.name),
        };
        &mut self.entries.entry(key).or_insert_with(|| (described(), WorkTimes::default())).1
    }

    /// Returns `true` if there is room for one more entry. Makes room if needed, by combining the launch
    /// configurations of the kernel that has the most: a kernel whose grid grows with each call has hundreds.
    fn has_room(&mut self) -> bool {
        let others = usize::from(self.entries.contains_key(&OTHERS));
        let is_full = self.entries.len() - others >= MAX_KERNELS;
        if !is_full || self.is_exhausted {
            return !is_full;
        }
        let mut shapes: HashMap<&'static str, usize> = HashMap::new();
        let shaped = self.entries.values().filter(|(work, _)| work.has_shape());
        shaped.for_each(|(work, _)| *shapes.entry(work.name).or_default() += 1);
        let most = shapes.into_iter().filter(|(_, shapes)| *shapes > 1);
        let Some((name, _)) = most.max_by_key(|&(name, shapes)| (shapes, name)) else {
            self.is_exhausted = true;
            return false;
        };
        let mut combined = WorkTimes::default();
        let is_one = |work: &GpuWork| work.has_shape() && work.name == name;
        let ours = self.entries.extract_if(|_, (work, _)| is_one(work));
        ours.for_each(|(_, (_, one))| combined.add(&one));
        self.entries.insert(address(name), (GpuWork::shapeless(name), combined));
        true
    }

    fn times(&self) -> impl Iterator<Item = &WorkTimes> {
        self.entries.values().map(|(_, times)| times)
    }

    /// Returns the kernels for the report, in no order. `calls` is the number of represented calls.
    fn report(&self, calls: f64) -> Vec<report::Kernel> {
        let total_ns: f64 = self.times().map(|times| times.represented_ns).sum();
        let entries = self.entries.values();
        entries.filter_map(|(work, times)| times.report(work, calls, total_ns)).collect()
    }
}

impl WorksElsewhere {
    fn record(&mut self, work: &'static GpuWork, reason: ElsewhereReason, ns: u64) {
        let WorksElsewhere(works) = self;
        let own = (address(work.name), reason);
        let has_room = works.len() < 2 * MAX_KERNELS || works.contains_key(&own);
        let (key, name) =
            if has_room { (own, work.name) } else { ((OTHERS, reason), report::Kernel::OTHER) };
        let (_, times) = works.entry(key).or_insert_with(|| (name, ElsewhereTimes::default()));
        times.count += 1;
        times.ns += ns;
    }

    fn report(&self) -> Vec<report::Elsewhere> {
        let works = self.0.iter().map(|(&(_, why), &(name, times))| times.report(name, why));
        let mut elsewhere: Vec<_> = works.collect();
        elsewhere.sort_by(|one, two| (&one.name, one.why).cmp(&(&two.name, two.why)));
        elsewhere
    }
}

impl OpenedCalls {
    /// Records a call that represents `weight` calls.
    pub fn record(&mut self, call: &CallFigures<'_>, weight: f64) {
        self.represented += weight;
        let gaps_ns = call.span_ns.saturating_sub(call.busy_ns);
        for (distribution, ns) in [
            (&mut self.busy, call.busy_ns),
            (&mut self.self_busy, call.self_busy_ns),
            (&mut self.span, call.span_ns),
            (&mut self.gaps, gaps_ns),
        ] {
            distribution.record(ns as f64);
        }
        self.streams = self.streams.max(call.streams);
        for (index, of) in call.works.iter().enumerate() {
            let &WorkTime { work, ns, .. } = of;
            self.kernels += weight * f64::from(u8::from(work.is_kernel));
            self.works.of(work).record(ns as f64, weight);
            if let Some(reason) = call.elsewhere(index, of) {
                self.elsewhere.record(work, reason, ns);
            }
        }
    }

    /// Counts CUPTI records without times. The calls that they belong to are lost.
    pub fn count_zero_times(&mut self, count: u64) {
        self.zero_times += count;
    }

    /// Returns the figures for the report, the kernel with the largest share first.
    pub fn report(&self) -> report::KernelTimes {
        let calls = self.represented.max(1.0);
        let mut times = report::value!(KernelTimes {
            opened: self.busy.summary().count(),
            busy_ns: stats(&self.busy),
            self_busy_ns: stats(&self.self_busy),
            span_ns: stats(&self.span),
            gaps_ns: stats(&self.gaps),
            kernels_per_call: Some(self.kernels / calls),
            streams: Some(self.streams),
            kernels: self.works.report(calls),
            elsewhere: self.elsewhere.report(),
            zero_times: self.zero_times,
        });
        times.sort_kernels();
        times
    }
}

impl WorkTimes {
    fn record(&mut self, ns: f64, weight: f64) {
        self.times.record(ns);
        self.represented += weight;
        self.represented_ns += weight * ns;
    }

    fn add(&mut self, other: &WorkTimes) {
        self.times.merge(&other.times);
        self.represented += other.represented;
        self.represented_ns += other.represented_ns;
    }

    /// Describes the kernel for the report. `calls` is the number of represented calls, and `total_ns` the time of
    /// all kernels in them.
    fn report(&self, work: &GpuWork, calls: f64, total_ns: f64) -> Option<report::Kernel> {
        let summary = self.times.summary();
        let (time_ns, count) = (summary.stats(0.0, summary.sum(0.0))?, summary.count());
        Some(report::value!(Kernel {
            name: work.name.to_owned(),
            grid: work.grid,
            block: work.block,
            registers: work.registers,
            shared_bytes: work.shared_bytes,
            per_call: self.represented / calls,
            count,
            total_ns: time_ns.sum,
            time_ns: Some(time_ns),
            share: if total_ns > 0.0 { self.represented_ns / total_ns } else { 0.0 },
        }))
    }
}

impl ElsewhereTimes {
    fn report(self, name: &str, why: ElsewhereReason) -> report::Elsewhere {
        report::Elsewhere::new(name.to_owned(), self.count, self.ns as f64, why)
    }
}

fn stats(times: &Distribution) -> Option<Stats> {
    let summary = times.summary();
    summary.stats(0.0, summary.sum(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::handles::Stream;

    fn kernel(name: &'static str, blocks: u32) -> &'static GpuWork {
        let grid = [blocks, u32::from(blocks > 0), u32::from(blocks > 0)];
        Box::leak(Box::new(GpuWork {
            name,
            is_kernel: blocks > 0,
            grid,
            block: [1; 3],
            registers: 0,
            shared_bytes: 0,
        }))
    }

    fn stream_id(handle: usize) -> StreamId {
        StreamId::new(Stream(handle), 9)
    }

    fn record(opened: &mut OpenedCalls, works: &[(&'static GpuWork, u64, bool)]) {
        record_weighted(opened, 1.0, works);
    }

    fn record_weighted(
        opened: &mut OpenedCalls,
        weight: f64,
        works: &[(&'static GpuWork, u64, bool)],
    ) {
        let ns = works.iter().map(|(_, ns, _)| ns).sum();
        let work = |&(work, ns, elsewhere): &(_, _, bool)| {
            let stream = Some(stream_id(if elsewhere { 8 } else { 7 }));
            WorkTime { work, ns, stream, is_after_stop: false }
        };
        let works: Vec<_> = works.iter().map(work).collect();
        let figures = CallFigures {
            busy_ns: ns,
            self_busy_ns: ns / 2,
            own_ns: BTreeMap::from([(DeviceId::Cuda(0), ns / 2)]),
            span_ns: 2 * ns,
            streams: 1,
            stream: Some(stream_id(7)),
            works: &works,
            ..CallFigures::default()
        };
        opened.record(&figures, weight);
    }

    #[test]
    fn kernels_are_told_apart_by_name_and_grid() {
        let (small, large, copy) = (kernel("add", 1), kernel("add", 64), kernel("[copy HtoD]", 0));
        let mut opened = OpenedCalls::default();
        record(&mut opened, &[(small, 100, false), (small, 300, false), (copy, 50, true)]);
        record(&mut opened, &[(large, 700, false)]);
        let report = opened.report();
        let of = |kernel: &report::Kernel| {
            (kernel.name.clone(), kernel.grid[0], kernel.count, kernel.per_call, kernel.total_ns)
        };
        let of: Vec<_> = report.kernels.iter().map(of).collect();
        assert_eq!(
            of,
            [
                ("add".to_owned(), 64, 1, 0.5, 700.0),
                ("add".to_owned(), 1, 2, 1.0, 400.0),
                ("[copy HtoD]".to_owned(), 0, 1, 0.5, 50.0)
            ]
        );
        assert_eq!(report.kernels_per_call, Some(1.5), "copies are no kernels");
        assert_eq!(report.elsewhere.len(), 1);
        assert_eq!((report.elsewhere[0].count, report.elsewhere[0].total_ns), (1, 50.0));
        let shares: f64 = report.kernels.iter().map(|kernel| kernel.share).sum();
        assert!((shares - 1.0).abs() < 1e-9);
        assert_eq!(report.busy_ns.unwrap().sum, 1_150.0);
    }

    /// The first call of a function is often opened in any case, and sets up what the others use.
    #[test]
    fn means_are_of_all_calls() {
        let (setup, step) = (kernel("setup", 1), kernel("step", 1));
        let mut opened = OpenedCalls::default();
        record(&mut opened, &vec![(setup, 100, false); 1_000]);
        record_weighted(&mut opened, 999.0, &[(step, 100, false); 2]);
        let report = opened.report();
        assert_eq!((report.opened, report.kernels_per_call), (2, Some(2.998)));
        let of = |kernel: &report::Kernel| (kernel.count, kernel.per_call, kernel.total_ns);
        assert_eq!(
            report.kernels.iter().map(of).collect::<Vec<_>>(),
            [(2, 1.998, 200.0), (1_000, 1.0, 100_000.0)]
        );
        assert!((report.kernels[0].share - 1_998.0 / 2_998.0).abs() < 1e-12);
    }

    #[test]
    fn too_many_shapes_of_one_kernel_are_combined() {
        let (name, steady) = ("grows", [1, 2].map(|blocks| kernel("steady", blocks)));
        let mut opened = OpenedCalls::default();
        let grow = |opened: &mut OpenedCalls, blocks: std::ops::RangeInclusive<u32>| {
            for blocks in blocks {
                let steady = steady.map(|work| (work, 1, false));
                record(
                    opened,
                    &[&steady[..], &[(kernel(name, blocks), u64::from(blocks), true)]].concat(),
                );
            }
        };
        let entries = |opened: &OpenedCalls| {
            let kernels = opened.report().kernels.into_iter();
            kernels
                .map(|kernel| (kernel.name, kernel.grid[0], kernel.count, kernel.total_ns))
                .collect::<Vec<_>>()
        };
        grow(&mut opened, 1..=253);
        assert_eq!(entries(&opened).len(), MAX_KERNELS);
        grow(&mut opened, 254..=300);
        let expected =
            [(name, 0, 300, 45_150.0), ("steady", 1, 300, 300.0), ("steady", 2, 300, 300.0)];
        let mut found = entries(&opened);
        found.sort_by_key(|&(_, blocks, ..)| blocks);
        assert_eq!(
            found,
            expected.map(|(name, blocks, count, ns)| (name.to_owned(), blocks, count, ns))
        );
        let [elsewhere] = &opened.report().elsewhere[..] else { panic!("{opened:?}") };
        assert_eq!((elsewhere.name.as_str(), elsewhere.count), (name, 300));
    }

    /// The reader of CUPTI's records uses the same name for kernels beyond its own limit.
    #[test]
    fn shapes_are_combined_beside_entry_for_others() {
        let mut opened = OpenedCalls::default();
        record(&mut opened, &[(kernel(report::Kernel::OTHER, 1), 10, false)]);
        for blocks in 1..=300 {
            record(&mut opened, &[(kernel("grows", blocks), 10, false)]);
        }
        let mut found: Vec<_> =
            opened.report().kernels.into_iter().map(|it| (it.name, it.count)).collect();
        found.sort();
        assert_eq!(found, [(report::Kernel::OTHER.to_owned(), 1), ("grows".to_owned(), 300)]);
    }

    #[test]
    fn kernels_beyond_the_limit_share_an_entry() {
        let mut opened = OpenedCalls::default();
        for n in 0..300 {
            record(&mut opened, &[(kernel(format!("k{n}").leak(), 1), 10, false)]);
        }
        let report = opened.report();
        assert_eq!(report.kernels.len(), MAX_KERNELS + 1);
        let other =
            report.kernels.iter().find(|kernel| kernel.name == report::Kernel::OTHER).unwrap();
        assert_eq!((other.count, other.total_ns), (45, 450.0));
        assert_eq!(report.kernels.iter().map(|kernel| kernel.count).sum::<u64>(), 300);
    }
}
