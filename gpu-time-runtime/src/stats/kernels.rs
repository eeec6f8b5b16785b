//! The GPU work of opened calls: the figures of each call, and the kernels of a series.

use std::collections::HashMap;
use std::ptr;

use crate::types::activity::GpuWork;
use gpu_time_report::{self as report, Distribution, ElsewhereReason, Stats};

/// The maximum number of kernels with separate figures in a series. Further kernels share one
/// entry.
const MAX_KERNELS: usize = 255;

/// The GPU work of one opened call of a function, including the functions that it called.
pub(crate) struct CallFigures {
    /// The time during which at least one of its kernels, copies or memsets ran.
    pub busy_ns: u64,
    /// `busy_ns` without the time in which work of annotated functions inside ran.
    pub self_busy_ns: u64,
    /// The part of the outermost function's busy time that is attributed to this function alone.
    /// Each instant is attributed to one function, even while work of several functions runs.
    pub own_ns: u64,
    /// The time from the first start to the last end of its work.
    pub span_ns: u64,
    /// The part of the span in which the GPU waited for work that the host had not enqueued.
    pub waited_ns: u64,
    /// The number of streams that the work ran on.
    pub streams: u32,
    pub works: Vec<WorkTime>,
}

/// One run of a kernel, copy or memset.
pub(crate) struct WorkTime {
    pub work: &'static GpuWork,
    pub ns: u64,
    /// The reason why the function's events would not bracket this work, if they would not.
    pub elsewhere: Option<ElsewhereReason>,
}

/// The opened calls of a series.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenedCalls {
    calls: u64,
    busy: Distribution,
    self_busy: Distribution,
    span: Distribution,
    gaps: Distribution,
    /// The number of kernel runs, without copies and memsets.
    kernels: u64,
    streams: u32,
    /// The number of CUPTI records without times.
    zero_times: u64,
    works: Works<KernelTimes>,
    /// Work that events would not bracket, indexed by [`ElsewhereReason`].
    elsewhere: [Works<ElsewhereTimes>; 2],
}

/// Times of each kernel, copy and memset, in bounded memory.
#[derive(Clone, Debug)]
struct Works<T> {
    /// The work by its address, which identifies it because all work is interned.
    known: HashMap<usize, (&'static GpuWork, T)>,
    other: Option<T>,
}

#[derive(Clone, Debug, Default)]
struct KernelTimes {
    times: Distribution,
}

#[derive(Clone, Copy, Debug, Default)]
struct ElsewhereTimes {
    count: u64,
    ns: u64,
}

impl<T> Default for Works<T> {
    fn default() -> Self {
        Works { known: HashMap::new(), other: None }
    }
}

impl<T: Default> Works<T> {
    fn of(&mut self, work: &'static GpuWork) -> &mut T {
        let address = ptr::from_ref(work).addr();
        if self.known.len() >= MAX_KERNELS && !self.known.contains_key(&address) {
            return self.other.get_or_insert_default();
        }
        &mut self.known.entry(address).or_insert_with(|| (work, T::default())).1
    }

    fn iter(&self) -> impl Iterator<Item = (&'static GpuWork, &T)> {
        self.known.values().map(|(work, of)| (*work, of))
    }

    fn heap_bytes(&self) -> usize {
        self.known.capacity() * size_of::<(usize, &GpuWork, T)>()
    }
}

impl OpenedCalls {
    /// Records one call.
    pub fn record(&mut self, call: &CallFigures) {
        self.calls += 1;
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
        for &WorkTime { work, ns, elsewhere } in &call.works {
            self.kernels += u64::from(work.is_kernel);
            self.works.of(work).times.record(ns as f64);
            if let Some(reason) = elsewhere {
                let times = self.elsewhere[reason as usize].of(work);
                times.count += 1;
                times.ns += ns;
            }
        }
    }

    /// Counts CUPTI records without times. The calls that they belong to are lost.
    pub fn count_zero_times(&mut self, count: u64) {
        self.zero_times += count;
    }

    /// Returns the figures for the report, the kernel with the largest total first.
    pub fn report(&self) -> report::KernelTimes {
        let calls = self.calls.max(1) as f64;
        let mut kernels: Vec<_> = self
            .works
            .iter()
            .map(|(work, kernel)| kernel.report(work, calls))
            .chain(self.works.other.iter().map(|kernel| kernel.report(&other(), calls)))
            .flatten()
            .collect();
        let total_ns: f64 = kernels.iter().map(|kernel| kernel.total_ns).sum();
        for kernel in &mut kernels {
            kernel.share = if total_ns > 0.0 { kernel.total_ns / total_ns } else { 0.0 };
        }
        kernels.sort_by(|one, two| {
            two.total_ns.total_cmp(&one.total_ns).then_with(|| one.name.cmp(&two.name))
        });
        let reasons = [ElsewhereReason::OtherStream, ElsewhereReason::AfterStop];
        let mut elsewhere: Vec<_> = reasons
            .into_iter()
            .flat_map(|why| {
                let works = &self.elsewhere[why as usize];
                let named = works.iter().map(move |(work, times)| times.report(&work.name, why));
                let other = works.other.iter();
                named.chain(other.map(move |times| times.report(report::Kernel::OTHER, why)))
            })
            .collect();
        elsewhere.sort_by(|one, two| (&one.name, one.why).cmp(&(&two.name, two.why)));
        report::KernelTimes {
            opened: self.calls,
            busy_ns: stats(&self.busy),
            self_busy_ns: stats(&self.self_busy),
            span_ns: stats(&self.span),
            gaps_ns: stats(&self.gaps),
            kernels_per_call: Some(self.kernels as f64 / calls),
            streams: Some(self.streams),
            kernels,
            elsewhere,
            zero_times: self.zero_times,
        }
    }

    /// Returns the heap memory in use, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let own = [&self.busy, &self.self_busy, &self.span, &self.gaps];
        let kernels =
            self.works.iter().map(|(_, of)| of).chain(&self.works.other).map(|of| &of.times);
        let times = own.into_iter().chain(kernels).map(Distribution::heap_bytes);
        let elsewhere = self.elsewhere.iter().map(Works::heap_bytes).sum::<usize>();
        times.sum::<usize>() + self.works.heap_bytes() + elsewhere
    }
}

impl KernelTimes {
    fn report(&self, work: &GpuWork, calls: f64) -> Option<report::Kernel> {
        let summary = self.times.summary();
        let (time_ns, count) = (summary.stats(0.0, summary.sum(0.0))?, summary.count());
        Some(report::Kernel {
            name: work.name.clone(),
            grid: work.grid,
            block: work.block,
            registers: work.registers,
            shared_bytes: work.shared_bytes,
            per_call: count as f64 / calls,
            count,
            total_ns: time_ns.sum,
            time_ns: Some(time_ns),
            share: 0.0,
        })
    }
}

impl ElsewhereTimes {
    fn report(self, name: &str, why: ElsewhereReason) -> report::Elsewhere {
        report::Elsewhere {
            name: name.to_owned(),
            count: self.count,
            total_ns: self.ns as f64,
            why,
        }
    }
}

/// Describes the entry that the kernels beyond [`MAX_KERNELS`] share.
fn other() -> GpuWork {
    GpuWork {
        name: report::Kernel::OTHER.to_owned(),
        is_kernel: true,
        grid: [0; 3],
        block: [0; 3],
        registers: 0,
        shared_bytes: 0,
    }
}

fn stats(times: &Distribution) -> Option<Stats> {
    let summary = times.summary();
    summary.stats(0.0, summary.sum(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, blocks: u32) -> &'static GpuWork {
        let grid = [blocks, u32::from(blocks > 0), u32::from(blocks > 0)];
        Box::leak(Box::new(GpuWork {
            name: name.to_owned(),
            is_kernel: blocks > 0,
            grid,
            block: [1; 3],
            registers: 0,
            shared_bytes: 0,
        }))
    }

    fn call(works: &[(&'static GpuWork, u64, bool)]) -> CallFigures {
        let ns = works.iter().map(|(_, ns, _)| ns).sum();
        let work = |&(work, ns, elsewhere): &(_, _, bool)| {
            let elsewhere = elsewhere.then_some(ElsewhereReason::OtherStream);
            WorkTime { work, ns, elsewhere }
        };
        let works = works.iter().map(work).collect();
        CallFigures {
            busy_ns: ns,
            self_busy_ns: ns / 2,
            own_ns: ns / 2,
            span_ns: 2 * ns,
            waited_ns: 0,
            streams: 1,
            works,
        }
    }

    #[test]
    fn kernels_are_told_apart_by_name_and_grid() {
        let (small, large, copy) = (kernel("add", 1), kernel("add", 64), kernel("[copy HtoD]", 0));
        let mut opened = OpenedCalls::default();
        opened.record(&call(&[(small, 100, false), (small, 300, false), (copy, 50, true)]));
        opened.record(&call(&[(large, 700, false)]));
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

    #[test]
    fn kernels_beyond_the_limit_share_an_entry() {
        let mut opened = OpenedCalls::default();
        for n in 0..300 {
            opened.record(&call(&[(kernel(&format!("k{n}"), 1), 10, false)]));
        }
        let report = opened.report();
        assert_eq!(report.kernels.len(), MAX_KERNELS + 1);
        let other =
            report.kernels.iter().find(|kernel| kernel.name == report::Kernel::OTHER).unwrap();
        assert_eq!((other.count, other.total_ns), (45, 450.0));
        assert_eq!(report.kernels.iter().map(|kernel| kernel.count).sum::<u64>(), 300);
    }
}
