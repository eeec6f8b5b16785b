//! The cost controller. It decides how often each site is timed, so that timing stays within a
//! fraction of wall time. Pure arithmetic, without clocks or locks.
//!
//! A site's demand is the cost of timing all of its calls. The budget is divided equally among
//! sites, so that all are measured about equally well. Any part that a site does not need goes to
//! the others. Overspending is paid back over the following seconds.
//!
//! A program that is idle most of the time could make its few calls much slower by that. So timing in the calls of a
//! function also takes at most the budget's fraction of *their* time, unless the GPU sets the pace and makes up for it.
//! What the model below does not know of is [measured](crate::stats::effect), and corrects it.
//!
//! # Host time and device time
//!
//! The host and the GPU work in parallel, so a program slows down by less than the sum of the two
//! costs. [`charged_ns`] charges only the critical path, under two assumptions:
//!
//! - **The GPU sets the pace** if it is still busy with earlier work when the host has enqueued the
//!   whole bracket. The event pair slows the program down. The host time is hidden, and part of it
//!   is spent waiting for space in a full queue.
//! - **The GPU is idle** if the host sets the pace or the program waits for each call. The host
//!   time slows the program down, and so do costs that are not counted. For example, a launch
//!   between two records takes longer than one alone. These costs are estimated as half the pair's
//!   time. See `benches/budget/results.md`.
//!
//! Flushes and holds are charged in full, because kernels that take microseconds do not hide them.

use std::mem;

use crate::stats::effect::{Added, LEFT_ALONE, LONG_NS};

/// The part of the budget to spend. The rest is a reserve for costs that are not counted.
const TARGET: f64 = 0.9;
/// The part of the target to spend however large the debt is, so that every site continues to be
/// timed.
const MIN_SPENDING: f64 = 0.05;
/// The period over which a debt is paid back. Any debt that would take longer is forgiven.
const DEBT_NS: f64 = 10e9;
/// The time for which a site's load is remembered after its calls have become rare.
const MEMORY_NS: f64 = 1e9;
/// The period over which reported costs are averaged.
const AVERAGING_NS: f64 = 10e9;
/// The number of calls in one interval at which a higher load is believed immediately. A rise from
/// fewer calls may be a coincidence.
const EVIDENCE: f64 = 32.0;
/// The cost of a call is averaged over about this many metered calls, and over about this period.
const SAMPLES: f64 = 128.0;
const SAMPLES_NS: f64 = 5e9;
/// Upper bound on the cost of an untimed call, apart from decisions. It is the bound with eight
/// concurrent threads, in `benches/overhead/results.md`.
const PASSING_NS: f64 = 6.0;
/// The same for a call that has a place on the stack, and its time read.
const LONG_PASSING_NS: f64 = 100.0;
/// The assumed host cost of a timed call, and the assumed cost of its event pairs, until they are
/// measured.
const GUESS_NS: f64 = 3_000.0;
/// The pace is averaged over about this many samples. This is fewer than [`SAMPLES`], because the
/// cost of expensive calls is underestimated until a change of pace is noticed.
const PACE_SAMPLES: f64 = 32.0;
/// The time that a program loses in addition to the host time when the GPU is idle, as a fraction
/// of the pair's time.
const IDLE_PAIR: f64 = 0.5;
/// The number of samples assumed to have found the GPU idle, before the first real one.
const IDLE_SAMPLES: f64 = 8.0;
/// The most by which measured costs correct the model.
const MOST_CORRECTION: f64 = 1_000.0;

/// A site's counters since the last adjustment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage<T = f64> {
    /// Calls, timed or not.
    pub calls: T,
    pub timed: T,
    /// Device time taken by the event pairs of timed calls.
    pub pair_ns: T,
    /// Device time taken by their flushes and holds.
    pub preparation_ns: T,
    /// Timed calls whose host time was measured, and their total host time.
    pub metered: T,
    pub metered_ns: T,
    /// Host time spent deciding which calls to time.
    pub decision_ns: T,
    /// Samples that show whether the host or the GPU sets the pace, and the number of them that
    /// found the GPU busy.
    pub paced: T,
    pub paced_by_gpu: T,
}

/// The cost of timing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Total time on the host and on the devices, hidden or not.
    pub host_ns: f64,
    pub device_ns: f64,
    /// The part charged to the budget.
    pub charged_ns: f64,
}

impl Cost {
    fn add(&mut self, other: Cost) {
        self.host_ns += other.host_ns;
        self.device_ns += other.device_ns;
        self.charged_ns += other.charged_ns;
    }
}

/// Returns the time that timed calls add to the program when the GPU sets the pace for a fraction `gpu_paced`
/// of them. See the assumptions in the module documentation.
fn charged_ns(host_ns: f64, pair_ns: f64, preparation_ns: f64, gpu_paced: f64) -> f64 {
    let idle_ns = host_ns + IDLE_PAIR * pair_ns;
    preparation_ns + gpu_paced * pair_ns + (1.0 - gpu_paced) * idle_ns
}

/// What is known of the whole calls in which a site was timed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WholeCalls {
    /// The index of the site whose calls they are, if it is not the site itself.
    pub unit: Option<usize>,
    /// The mean time of the site's own calls, and what timing has added to all of them.
    pub mean_ns: Option<f64>,
    pub added: Option<Added>,
}

/// A site's learned load and costs.
#[derive(Clone, Copy, Debug)]
struct Load {
    whole: WholeCalls,
    /// The time of the calls so far, and the cost of timing them according to the model.
    all_ns: f64,
    modelled_ns: f64,
    /// By which factor the measured cost exceeds that of the model.
    correction: f64,
    /// The sums over the sites that are timed in this one's calls: the modelled cost, and as fractions of wall time the
    /// cost at the current rates, and the part of it for which the GPU sets the pace.
    inside: TimedInside,
    calls_per_ns: f64,
    /// Per timed call.
    host_ns: Mean,
    pair_ns: Mean,
    preparation_ns: Mean,
    /// Per call, timed or not.
    decision_ns: Mean,
    /// The fraction of samples that found the GPU busy.
    gpu_paced: Mean,
    /// Upper bound on the rate.
    max_rate: f64,
    /// The fraction of calls that are timed.
    rate: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct TimedInside {
    modelled_ns: f64,
    share: f64,
    gpu_paced: f64,
}

/// A running mean that gradually forgets old values.
#[derive(Clone, Copy, Debug)]
struct Mean {
    value: f64,
    /// The number of values included, discounted for forgetting.
    weight: f64,
    max_weight: f64,
    /// The sum of values added with a count of 0. It is included when the next count arrives.
    uncounted: f64,
}

impl Mean {
    /// Creates a mean over roughly the last `max_weight` values. It is `value` until the first one
    /// arrives.
    fn new(value: f64, max_weight: f64) -> Self {
        Mean { value, weight: 0.0, max_weight, uncounted: 0.0 }
    }

    /// Adds `count` values with the given sum, `elapsed_ns` after the previous ones.
    fn add(&mut self, sum: f64, count: f64, elapsed_ns: f64) {
        self.weight *= (-elapsed_ns / SAMPLES_NS).exp();
        self.uncounted += sum;
        if count > 0.0 {
            let sum = mem::take(&mut self.uncounted);
            self.weight = (self.weight + count).min(self.max_weight.max(count));
            self.value += (sum / count - self.value) * count / self.weight;
        }
    }
}

/// Returns the pace before the first sample: the host is assumed to set it.
fn unknown_pace() -> Mean {
    Mean { weight: IDLE_SAMPLES, ..Mean::new(0.0, PACE_SAMPLES) }
}

impl Load {
    fn new(max_rate: f64) -> Self {
        let (guess, zero) = (Mean::new(GUESS_NS, SAMPLES), Mean::new(0.0, SAMPLES));
        Load {
            whole: WholeCalls::default(),
            all_ns: 0.0,
            modelled_ns: 0.0,
            correction: 1.0,
            inside: TimedInside::default(),
            calls_per_ns: 0.0,
            host_ns: guess,
            pair_ns: guess,
            preparation_ns: zero,
            decision_ns: zero,
            gpu_paced: unknown_pace(),
            max_rate,
            rate: max_rate,
        }
    }

    /// Learns from an interval's counters, and returns the cost of that interval.
    fn learn(&mut self, usage: Usage, elapsed_ns: f64) -> Cost {
        self.host_ns.add(usage.metered_ns, usage.metered, elapsed_ns);
        self.pair_ns.add(usage.pair_ns, usage.timed, elapsed_ns);
        self.preparation_ns.add(usage.preparation_ns, usage.timed, elapsed_ns);
        self.decision_ns.add(usage.decision_ns, usage.calls, elapsed_ns);
        self.gpu_paced.add(usage.paced_by_gpu, usage.paced, elapsed_ns);
        let now = usage.calls / elapsed_ns;
        let is_rise = now > self.calls_per_ns && usage.calls >= EVIDENCE;
        let trust = if is_rise { 1.0 } else { -(-elapsed_ns / MEMORY_NS).exp_m1() };
        self.calls_per_ns += (now - self.calls_per_ns) * trust;
        self.all_ns += usage.calls * self.whole.mean_ns.unwrap_or(0.0);
        self.modelled_ns += self.timing_ns(usage);
        self.cost(usage)
    }

    /// Returns the time that timed calls add to the program, according to the model.
    fn timing_ns(&self, usage: Usage) -> f64 {
        let host_ns = usage.timed * self.host_ns.value;
        charged_ns(host_ns, usage.pair_ns, usage.preparation_ns, self.gpu_paced.value)
    }

    /// Returns the factor by which the cost exceeds that of the model, as far as it is known: the larger the error of
    /// the measurement, the less it counts. Never below 1, because a GPU that sets the pace hides costs from the host.
    fn measured_correction(&self) -> f64 {
        let Some(Added { ns, error_ns }) = self.whole.added else { return 1.0 };
        let modelled_ns = self.inside.modelled_ns.max(1.0);
        let trust = 1.0 / (1.0 + (error_ns / modelled_ns).powi(2));
        (1.0 + (ns / modelled_ns - 1.0) * trust).clamp(1.0, MOST_CORRECTION)
    }

    /// Returns the fraction of wall time that the site's calls take, up to 1, once it is known. Where the GPU sets the
    /// pace in what is timed in them, it is the GPU's time that counts.
    fn in_use(&self) -> Option<f64> {
        let TimedInside { share, gpu_paced, .. } = self.inside;
        let gpu_paced = if share > 0.0 { gpu_paced / share } else { 0.0 };
        let of_host = (self.whole.mean_ns? * self.calls_per_ns).min(1.0);
        Some(gpu_paced + (1.0 - gpu_paced) * of_host)
    }

    /// Returns the cost of an interval, based on the learned host time per call.
    fn cost(&self, usage: Usage) -> Cost {
        let Usage { pair_ns, preparation_ns, .. } = usage;
        let (timed_ns, passing_ns) = (usage.timed * self.host_ns.value, self.passing_ns(usage));
        Cost {
            host_ns: timed_ns + passing_ns,
            device_ns: pair_ns + preparation_ns,
            charged_ns: self.timing_ns(usage) * self.correction + passing_ns * self.host_paced(),
        }
    }

    /// Returns the host time spent on all calls, whether timed or not, including decisions.
    fn passing_ns(&self, usage: Usage) -> f64 {
        usage.calls * self.passed_ns() + usage.decision_ns
    }

    fn passed_ns(&self) -> f64 {
        let is_long = self.whole.mean_ns.is_some_and(|ns| ns >= LONG_NS);
        if is_long { LONG_PASSING_NS } else { PASSING_NS }
    }

    /// Returns the fraction of samples that found the GPU idle.
    fn host_paced(&self) -> f64 {
        1.0 - self.gpu_paced.value
    }

    /// Returns the fraction of wall time charged for all calls, whether timed or not.
    fn passing_share(&self) -> f64 {
        self.calls_per_ns * (self.passed_ns() + self.decision_ns.value) * self.host_paced()
    }

    /// Returns the fraction of wall time that would be charged for timing at the maximum rate.
    fn demand(&self) -> f64 {
        let [host_ns, pair_ns, preparation_ns, gpu_paced] =
            [self.host_ns, self.pair_ns, self.preparation_ns, self.gpu_paced].map(|m| m.value);
        let call_ns = self.correction * charged_ns(host_ns, pair_ns, preparation_ns, gpu_paced);
        let left_alone = if self.whole.unit.is_some() { LEFT_ALONE } else { 0.0 };
        self.max_rate * self.calls_per_ns * call_ns * (1.0 - left_alone)
    }
}

/// The fraction of wall time available for timing, and the time spent so far.
#[derive(Debug)]
pub(crate) struct BudgetAccount {
    share: f64,
    loads: Vec<Load>,
    debt_ns: f64,
    /// The fractions of wall time that were charged in total and for untimed calls. Both are
    /// averages that start at 0 and cover a fraction `weight` of the averaging period so far.
    cost_share: f64,
    passing_share: f64,
    weight: f64,
    /// The total cost of past intervals.
    cost: Cost,
}

impl BudgetAccount {
    /// Creates an unspent budget.
    pub fn new(share: f64) -> Self {
        BudgetAccount {
            share,
            loads: Vec::new(),
            debt_ns: 0.0,
            cost_share: 0.0,
            passing_share: 0.0,
            weight: 0.0,
            cost: Cost::default(),
        }
    }

    pub fn share(&self) -> f64 {
        self.share
    }

    /// Returns the fraction of wall time charged recently.
    pub fn cost_share(&self) -> f64 {
        self.normalized(self.cost_share)
    }

    fn normalized(&self, average: f64) -> f64 {
        if self.weight > 0.0 { average / self.weight } else { 0.0 }
    }

    /// Returns the fraction of wall time recently charged for untimed calls, and the index of the site that
    /// contributes most to it. Returns `None` if it leaves room in the budget for the minimum spending.
    pub fn overrun(&self) -> Option<(f64, usize)> {
        let passing = self.normalized(self.passing_share);
        let shares = self.loads.iter().map(Load::passing_share).enumerate();
        let (busiest, _) = shares.max_by(|one, other| one.1.total_cmp(&other.1))?;
        (passing + MIN_SPENDING * TARGET * self.share > self.share).then_some((passing, busiest))
    }

    /// Returns the total cost so far. `usages` are the counters of all sites since the last
    /// adjustment.
    pub fn cost(&self, usages: impl Iterator<Item = Usage>) -> Cost {
        let mut cost = self.cost;
        self.loads.iter().zip(usages).for_each(|(load, usage)| cost.add(load.cost(usage)));
        cost
    }

    /// Adds a site. At most a fraction `max_rate` of its calls is timed.
    pub fn add(&mut self, max_rate: f64) {
        self.loads.push(Load::new(max_rate));
    }

    /// Changes the maximum rate of the site with this index. Returns its rate until the next
    /// adjustment.
    pub fn limit(&mut self, index: usize, max_rate: f64) -> Option<f64> {
        let load = self.loads.get_mut(index)?;
        // A site that was at its maximum stays there.
        load.rate = if load.rate < load.max_rate { load.rate.min(max_rate) } else { max_rate };
        load.max_rate = max_rate;
        Some(load.rate)
    }

    /// Sets what is known of whole calls of the site with this index.
    pub fn set_whole_calls(&mut self, index: usize, whole: WholeCalls) {
        if let Some(load) = self.loads.get_mut(index) {
            load.whole = whole;
        }
    }

    /// Returns what timing has added to whole calls, as a fraction of their time, once it is known.
    pub fn added_share(&self) -> Option<Added> {
        let known = self.loads.iter().filter_map(|load| Some((load.whole.added?, load.all_ns)));
        let (added, all_ns) =
            known.reduce(|(one, ns), (other, more)| (one.and(other), ns + more))?;
        let share = |ns: f64| ns / all_ns.max(1.0);
        Some(Added { ns: share(added.ns), error_ns: share(added.error_ns) })
    }

    /// Adjusts each site's rate after an interval that ends now. The usages and the returned rates
    /// are in the order in which the sites were added. `own_ns` is the time taken by the previous
    /// adjustment.
    pub fn adjust(
        &mut self,
        elapsed_ns: f64,
        usages: impl Iterator<Item = Usage>,
        own_ns: f64,
    ) -> impl Iterator<Item = f64> {
        let elapsed_ns = elapsed_ns.max(1.0);
        let mut cost = Cost { host_ns: own_ns, device_ns: 0.0, charged_ns: own_ns };
        let (mut passing_share, mut passing_ns) = (0.0, 0.0);
        for (load, usage) in self.loads.iter_mut().zip(usages) {
            cost.add(load.learn(usage, elapsed_ns));
            passing_share += load.passing_share();
            passing_ns += load.passing_ns(usage) * load.host_paced();
        }
        self.cost.add(cost);
        let target = TARGET * self.share;
        let max_debt_ns = target * DEBT_NS;
        let debt_ns = self.debt_ns + cost.charged_ns - target * elapsed_ns;
        self.debt_ns = debt_ns.clamp(0.0, max_debt_ns);
        let trust = -(-elapsed_ns / AVERAGING_NS).exp_m1();
        self.cost_share += (cost.charged_ns / elapsed_ns - self.cost_share) * trust;
        self.passing_share += (passing_ns / elapsed_ns - self.passing_share) * trust;
        self.weight += (1.0 - self.weight) * trust;

        let free = (target - passing_share) * (1.0 - self.debt_ns / max_debt_ns);
        self.correct();
        self.distribute(free.max(MIN_SPENDING * target));
        self.spare_whole_calls(target);
        self.loads.iter().map(|load| load.rate)
    }

    /// Adds up what is timed in the calls of each site.
    fn add_up(&mut self, of_load: impl Fn(&Load) -> TimedInside) {
        self.loads.iter_mut().for_each(|load| load.inside = TimedInside::default());
        for index in 0..self.loads.len() {
            let TimedInside { modelled_ns, share, gpu_paced } = of_load(&self.loads[index]);
            if let Some(unit) = self.unit_of(index) {
                unit.inside.modelled_ns += modelled_ns;
                unit.inside.share += share;
                unit.inside.gpu_paced += gpu_paced;
            }
        }
    }

    fn unit_of(&mut self, index: usize) -> Option<&mut Load> {
        let unit = self.loads[index].whole.unit.unwrap_or(index);
        self.loads.get_mut(unit)
    }

    /// Corrects the model by what was measured.
    fn correct(&mut self) {
        self.add_up(|load| TimedInside { modelled_ns: load.modelled_ns, ..TimedInside::default() });
        for index in 0..self.loads.len() {
            let correction = self.unit_of(index).map_or(1.0, |unit| unit.measured_correction());
            self.loads[index].correction = correction;
        }
    }

    /// Lowers the rates so that timing takes at most the fraction `target` of the time of the calls in which it is done.
    fn spare_whole_calls(&mut self, target: f64) {
        self.add_up(|load| {
            let share = load.demand() * load.rate / load.max_rate;
            let share = if share.is_finite() { share } else { 0.0 };
            TimedInside { share, gpu_paced: share * load.gpu_paced.value, modelled_ns: 0.0 }
        });
        for index in 0..self.loads.len() {
            let part = self.unit_of(index).and_then(|unit| {
                let most = target * unit.in_use()?;
                (unit.inside.share > most).then(|| most / unit.inside.share)
            });
            self.loads[index].rate *= part.unwrap_or(1.0);
        }
    }

    /// Divides a fraction of wall time among the sites.
    fn distribute(&mut self, share: f64) {
        // A negative rate means that none has been assigned yet.
        self.loads.iter_mut().for_each(|load| load.rate = -1.0);
        let (mut left, mut sites) = (share, self.loads.len());
        loop {
            let part = left / sites.max(1) as f64;
            let mut is_done = true;
            for load in self.loads.iter_mut().filter(|load| load.rate < 0.0) {
                let demand = load.demand();
                if demand <= part {
                    load.rate = load.max_rate;
                    (left, sites, is_done) = (left - demand, sites - 1, false);
                }
            }
            if is_done {
                for load in self.loads.iter_mut().filter(|load| load.rate < 0.0) {
                    load.rate = load.max_rate * part / load.demand();
                }
                return;
            }
        }
    }
}

#[cfg(test)]
mod program_tests;
#[cfg(test)]
mod tests;
