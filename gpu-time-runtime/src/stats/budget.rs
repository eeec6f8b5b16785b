//! The cost controller: how often each site is timed so that timing stays within a share of wall
//! time. Pure arithmetic, without clocks or locks.
//!
//! The demand of a site is the cost of timing all of its calls. The budget is divided equally among
//! sites, so that each is known about equally well, and what one site does not need goes to the
//! others. Overspending is paid back over the following seconds.
//!
//! # Host time and device time
//!
//! The host and the GPU work side by side, so a program slows down by less than the sum of the two
//! costs. [`charged_ns`] charges what is on the critical path, by two assumptions:
//!
//! - **The GPU sets the pace** where it was still busy with earlier work when the host had enqueued
//!   the whole bracket. The event pair slows the program down. The host's time is hidden, and part
//!   of it is waiting for room in a full queue.
//! - **The GPU was idle**, because the host sets the pace, or because the program waits for each call.
//!   The host's time slows the program down, and so does something that is not counted, such as a
//!   launch between two records that takes longer than one alone. It is estimated as half of the
//!   pair's time. See `docs/measurements.md`.
//!
//! Flushes and holds are charged in full, because kernels of microseconds do not hide them.

use std::mem;

/// The part of the budget that is spent; the rest is a reserve for costs that are not counted.
const TARGET: f64 = 0.9;
/// The part of the target that is spent however large the debt is, so that no site is forgotten.
const MIN_SPENDING: f64 = 0.05;
/// The time over which a debt is paid back. A debt that would take longer is forgiven.
const DEBT_NS: f64 = 10e9;
/// The time for which the load of a site is remembered after its calls have become rare.
const MEMORY_NS: f64 = 1e9;
/// The time over which reported costs are averaged.
const AVERAGING_NS: f64 = 10e9;
/// The number of calls that is a load and not a coincidence.
const EVIDENCE: f64 = 32.0;
/// The cost of a call is the mean of about this many measured calls, of about this time.
const SAMPLES: f64 = 128.0;
const SAMPLES_NS: f64 = 5e9;
/// Upper bound on the cost of a call that is passed over, apart from decisions: the bound on what
/// eight threads at once take, in `docs/measurements.md`.
const PASSING_NS: f64 = 6.0;
/// The cost of a timed call on the host, and of its event pairs, until they are known.
const GUESS_NS: f64 = 3_000.0;
/// The pace is that of about this many samples: fewer, because a wrong one underestimates expensive
/// calls.
const PACE_SAMPLES: f64 = 32.0;
/// What a program loses apart from the host's time if the GPU was idle, as a share of the pair's time.
const IDLE_PAIR: f64 = 0.5;
/// The number of samples that are assumed to have found the GPU idle before there is any.
const IDLE_SAMPLES: f64 = 8.0;

/// The counters of a site since the last adjustment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage<T = f64> {
    /// Calls that were timed or passed over.
    pub calls: T,
    pub timed: T,
    /// Device time of the event pairs of timed calls.
    pub pair_ns: T,
    /// Device time of their flushes and holds.
    pub preparation_ns: T,
    /// Timed calls whose host time was measured, and that time.
    pub metered: T,
    pub metered_ns: T,
    /// Host time of the decisions which calls are timed.
    pub decision_ns: T,
    /// Samples that show which side sets the pace, and those among them that found the GPU busy.
    pub paced: T,
    pub paced_by_gpu: T,
}

impl Usage {
    /// The host time of passing calls over, with the decisions.
    fn passing_ns(&self) -> f64 {
        self.calls * PASSING_NS + self.decision_ns
    }
}

/// The cost of timing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// Time on the host and on the devices, hidden or not.
    pub host_ns: f64,
    pub device_ns: f64,
    /// The part that counts against the budget.
    pub charged_ns: f64,
}

impl Cost {
    fn add(&mut self, other: Cost) {
        self.host_ns += other.host_ns;
        self.device_ns += other.device_ns;
        self.charged_ns += other.charged_ns;
    }
}

/// The time by which timed calls slow the program down, if the GPU sets the pace for the share
/// `gpu_paced` of them. See the assumptions at the top of this file.
fn charged_ns(host_ns: f64, pair_ns: f64, preparation_ns: f64, gpu_paced: f64) -> f64 {
    let idle_ns = host_ns + IDLE_PAIR * pair_ns;
    preparation_ns + gpu_paced * pair_ns + (1.0 - gpu_paced) * idle_ns
}

/// The learned load and costs of a site.
#[derive(Clone, Copy, Debug)]
struct Load {
    calls_per_ns: f64,
    /// Per timed call.
    host_ns: Mean,
    pair_ns: Mean,
    preparation_ns: Mean,
    /// Per call, timed or not.
    decision_ns: Mean,
    /// The share of the samples that found the GPU busy.
    gpu_paced: Mean,
    /// Upper bound on the rate.
    max_rate: f64,
    /// The share of the calls that is timed.
    rate: f64,
}

/// A mean that forgets slowly.
#[derive(Clone, Copy, Debug)]
struct Mean {
    value: f64,
    /// The number of values in it, as far as they are not forgotten.
    weight: f64,
    max_weight: f64,
    /// The sum of values whose count comes with the next ones.
    uncounted: f64,
}

impl Mean {
    /// A mean of the last `max_weight` values or so; `value` until the first one.
    fn new(value: f64, max_weight: f64) -> Self {
        Mean { value, weight: 0.0, max_weight, uncounted: 0.0 }
    }

    /// Adds `count` values with this sum, `elapsed_ns` after the last ones.
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

impl Load {
    fn new(max_rate: f64) -> Self {
        let (guess, zero) = (Mean::new(GUESS_NS, SAMPLES), Mean::new(0.0, SAMPLES));
        Load {
            calls_per_ns: 0.0,
            host_ns: guess,
            pair_ns: guess,
            preparation_ns: zero,
            decision_ns: zero,
            gpu_paced: Mean { weight: IDLE_SAMPLES, ..Mean::new(0.0, PACE_SAMPLES) },
            max_rate,
            rate: max_rate,
        }
    }

    /// Learns from the counters of an interval, and returns the cost of that interval.
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
        self.cost(usage)
    }

    /// The cost of an interval, as far as it is known.
    fn cost(&self, usage: Usage) -> Cost {
        let Usage { pair_ns, preparation_ns, .. } = usage;
        let (timed_ns, passing_ns) = (usage.timed * self.host_ns.value, usage.passing_ns());
        Cost {
            host_ns: timed_ns + passing_ns,
            device_ns: pair_ns + preparation_ns,
            charged_ns: charged_ns(timed_ns, pair_ns, preparation_ns, self.gpu_paced.value)
                + passing_ns * self.host_paced(),
        }
    }

    /// The share of the samples that found the GPU idle.
    fn host_paced(&self) -> f64 {
        1.0 - self.gpu_paced.value
    }

    /// The share of wall time that is charged for passing calls over.
    fn passing_share(&self) -> f64 {
        self.calls_per_ns * (PASSING_NS + self.decision_ns.value) * self.host_paced()
    }

    /// The share of wall time that would be charged if as many calls were timed as may be.
    fn demand(&self) -> f64 {
        let [host_ns, pair_ns, preparation_ns, gpu_paced] =
            [self.host_ns, self.pair_ns, self.preparation_ns, self.gpu_paced].map(|m| m.value);
        let call_ns = charged_ns(host_ns, pair_ns, preparation_ns, gpu_paced);
        self.max_rate * self.calls_per_ns * call_ns
    }
}

/// The share of wall time that timing may take, and what it took.
#[derive(Debug)]
pub(crate) struct Budget {
    share: f64,
    loads: Vec<Load>,
    debt_ns: f64,
    /// The shares of wall time that were charged, in all and for passing calls over. Averages that
    /// begin at 0, of which `weight` is known by now.
    cost_share: f64,
    passing_share: f64,
    weight: f64,
    /// The cost of all past intervals.
    cost: Cost,
}

impl Budget {
    /// Creates a budget of which nothing is spent.
    pub fn new(share: f64) -> Self {
        Budget {
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

    /// Returns the share of wall time that was charged recently.
    pub fn cost_share(&self) -> f64 {
        self.normalized(self.cost_share)
    }

    fn normalized(&self, average: f64) -> f64 {
        if self.weight > 0.0 { average / self.weight } else { 0.0 }
    }

    /// Returns the share of wall time that passing calls over took recently, and the index of the
    /// site with the most calls, if that alone exceeded the budget.
    pub fn overrun(&self) -> Option<(f64, usize)> {
        let passing = self.normalized(self.passing_share);
        let shares = self.loads.iter().map(Load::passing_share).enumerate();
        let (busiest, _) = shares.max_by(|one, other| one.1.total_cmp(&other.1))?;
        (passing + MIN_SPENDING * TARGET * self.share > self.share).then_some((passing, busiest))
    }

    /// Returns the cost so far, with the counters of all sites since the last adjustment.
    pub fn cost(&self, usages: impl Iterator<Item = Usage>) -> Cost {
        let mut cost = self.cost;
        self.loads.iter().zip(usages).for_each(|(load, usage)| cost.add(load.cost(usage)));
        cost
    }

    /// Adds a site, of whose calls at most the share `max_rate` is timed.
    pub fn add(&mut self, max_rate: f64) {
        self.loads.push(Load::new(max_rate));
    }

    /// Changes the bound on the rate of the site with this index. Returns the rate until the next
    /// adjustment.
    pub fn limit(&mut self, index: usize, max_rate: f64) -> Option<f64> {
        let load = self.loads.get_mut(index)?;
        // A site that was at its bound stays there.
        load.rate = if load.rate < load.max_rate { load.rate.min(max_rate) } else { max_rate };
        load.max_rate = max_rate;
        Some(load.rate)
    }

    /// Adjusts the rate of each site to the interval that ends now. The usages, and the rates that
    /// are returned, are in the order in which the sites were added. `own_ns` is the time that the
    /// adjustment before this one took.
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
            passing_ns += usage.passing_ns() * load.host_paced();
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
        self.distribute(free.max(MIN_SPENDING * target));
        self.loads.iter().map(|load| load.rate)
    }

    /// Divides a share of wall time among the sites.
    fn distribute(&mut self, share: f64) {
        // Negative: without a rate so far.
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
