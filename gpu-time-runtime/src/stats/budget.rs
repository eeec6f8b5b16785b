//! How often each site is timed so that it all costs no more than a share of the time: pure.
//!
//! What a site would cost if every call were timed is its calls by what one costs. The budget is dealt
//! out equally, so that every site is known about equally well, and what one does not need goes to the
//! others. What was overspent is paid back over the next seconds.

use std::mem;

/// Of the share, so much is dealt out: the rest is for what the measuring of the cost does not see.
const TARGET: f64 = 0.9;
/// However deep in debt, so much of the budget is dealt out, so that nothing is forgotten.
const LEAST: f64 = 0.05;
/// A debt is paid back over this time, and forgiven beyond what that would take.
const DEBT_NS: f64 = 10e9;
/// How long a load is remembered that has ceased.
const MEMORY_NS: f64 = 1e9;
/// Over this time the cost is averaged that is shown.
const SHOWN_NS: f64 = 10e9;
/// So many calls are a load, and not a coincidence.
const EVIDENCE: f64 = 32.0;
/// What a call costs is the mean of about so many that were looked at, of those in about this time.
const SAMPLES: f64 = 128.0;
const SAMPLES_NS: f64 = 5e9;
/// What passing over a call takes at most, beside a look now and then: the bound of what is measured on
/// eight threads at once, in `docs/measurements.md`.
const PASSING_NS: f64 = 6.0;
/// Until it is known, what timing a call takes of the host and of the device.
const GUESS_NS: f64 = 3_000.0;

/// What a site did, and what that cost, since the last adjustment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Calls that were timed or passed over.
    pub calls: f64,
    pub timed: f64,
    /// What the timed ones took of the device.
    pub device_ns: f64,
    /// Timed calls whose host time was measured, and that time.
    pub metered: f64,
    pub metered_ns: f64,
    /// What it took to decide which calls are timed.
    pub looked_ns: f64,
}

impl Usage {
    /// What it took to pass calls over, and to decide about them.
    fn passing_ns(&self) -> f64 {
        self.calls * PASSING_NS + self.looked_ns
    }
}

/// What timing took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub host_ns: f64,
    pub device_ns: f64,
}

impl Spent {
    fn add(&mut self, other: Spent) {
        self.host_ns += other.host_ns;
        self.device_ns += other.device_ns;
    }

    fn sum_ns(self) -> f64 {
        self.host_ns + self.device_ns
    }
}

/// What is known of a site.
#[derive(Clone, Copy, Debug)]
struct Load {
    calls_per_ns: f64,
    host_ns: Mean,
    device_ns: Mean,
    /// What it takes of the host to decide whether a call is timed, of all calls.
    look_ns: Mean,
    /// The share of its calls that may be timed at most.
    most: f64,
    rate: f64,
}

/// A mean that forgets slowly.
#[derive(Clone, Copy, Debug)]
struct Mean {
    value: f64,
    of: f64,
    /// What came without its count, which comes with the next.
    ahead: f64,
}

impl Mean {
    /// Takes in so many values, of which this is the sum, after so much time.
    fn add(&mut self, sum: f64, count: f64, elapsed_ns: f64) {
        self.of *= (-elapsed_ns / SAMPLES_NS).exp();
        self.ahead += sum;
        if count > 0.0 {
            let sum = mem::take(&mut self.ahead);
            self.of = (self.of + count).min(SAMPLES.max(count));
            self.value += (sum / count - self.value) * count / self.of;
        }
    }
}

impl Load {
    fn new(most: f64) -> Self {
        let guess = Mean { value: GUESS_NS, of: 0.0, ahead: 0.0 };
        let look_ns = Mean { value: 0.0, ..guess };
        Load { calls_per_ns: 0.0, host_ns: guess, device_ns: guess, look_ns, most, rate: most }
    }

    /// Takes in what the site did, and says what that cost.
    fn learn(&mut self, usage: Usage, elapsed_ns: f64) -> Spent {
        self.host_ns.add(usage.metered_ns, usage.metered, elapsed_ns);
        self.device_ns.add(usage.device_ns, usage.timed, elapsed_ns);
        self.look_ns.add(usage.looked_ns, usage.calls, elapsed_ns);
        let now = usage.calls / elapsed_ns;
        let is_rise = now > self.calls_per_ns && usage.calls >= EVIDENCE;
        let trust = if is_rise { 1.0 } else { -(-elapsed_ns / MEMORY_NS).exp_m1() };
        self.calls_per_ns += (now - self.calls_per_ns) * trust;
        self.spent(usage)
    }

    /// What that cost, by what is known.
    fn spent(&self, usage: Usage) -> Spent {
        let host_ns = usage.timed * self.host_ns.value + usage.passing_ns();
        Spent { host_ns, device_ns: usage.device_ns }
    }

    /// The share of the time that passing over calls takes.
    fn passing(&self) -> f64 {
        self.calls_per_ns * (PASSING_NS + self.look_ns.value)
    }

    /// The share of the time that it would take to time all calls that may be.
    fn demand(&self) -> f64 {
        self.most * self.calls_per_ns * (self.host_ns.value + self.device_ns.value)
    }
}

/// The share of the time that timing may take, and what it took.
#[derive(Debug)]
pub(crate) struct Budget {
    share: f64,
    loads: Vec<Load>,
    debt_ns: f64,
    /// What timing took, and what passing over calls did of that, as shares, averaged over the time from
    /// the beginning as if nothing had been before; and how much of the whole that average is by now.
    cost_share: f64,
    passing_share: f64,
    known: f64,
    /// What it took in all.
    spent: Spent,
}

impl Budget {
    /// A budget of this share, of which nothing is spent.
    pub fn new(share: f64) -> Self {
        Budget {
            share,
            loads: Vec::new(),
            debt_ns: 0.0,
            cost_share: 0.0,
            passing_share: 0.0,
            known: 0.0,
            spent: Spent::default(),
        }
    }

    pub fn share(&self) -> f64 {
        self.share
    }

    /// What timing took lately, as a share of the time.
    pub fn cost_share(&self) -> f64 {
        self.shown(self.cost_share)
    }

    fn shown(&self, average: f64) -> f64 {
        if self.known > 0.0 { average / self.known } else { 0.0 }
    }

    /// Where the budget could not be kept lately, because of what passing over calls took: that share of
    /// the time, and the site that was called most, by its place.
    pub fn overrun(&self) -> Option<(f64, usize)> {
        let passing = self.shown(self.passing_share);
        let loads = self.loads.iter().map(Load::passing).enumerate();
        let (busiest, _) = loads.max_by(|one, other| one.1.total_cmp(&other.1))?;
        (passing + LEAST * TARGET * self.share > self.share).then_some((passing, busiest))
    }

    /// What timing took in all, with what sites did since the last adjustment.
    pub fn spent(&self, usages: impl Iterator<Item = Usage>) -> Spent {
        let mut spent = self.spent;
        self.loads.iter().zip(usages).for_each(|(load, usage)| spent.add(load.spent(usage)));
        spent
    }

    /// One more site, of whose calls at most this share is to be timed.
    pub fn join(&mut self, most: f64) {
        self.loads.push(Load::new(most));
    }

    /// At most this share is to be timed of the calls of the site that joined at this place. Answers how
    /// many are until the next adjustment.
    pub fn limit(&mut self, at: usize, most: f64) -> Option<f64> {
        let load = self.loads.get_mut(at)?;
        // Where all was timed that may be, so it is now.
        load.rate = if load.rate < load.most { load.rate.min(most) } else { most };
        load.most = most;
        Some(load.rate)
    }

    /// Decides anew, after so much time, how often each site is timed. The usages are in the order in
    /// which the sites joined, and so are the rates; `own_ns` is what the adjustment before took.
    pub fn adjust(
        &mut self,
        elapsed_ns: f64,
        usages: impl Iterator<Item = Usage>,
        own_ns: f64,
    ) -> impl Iterator<Item = f64> {
        let elapsed_ns = elapsed_ns.max(1.0);
        let mut spent = Spent { host_ns: own_ns, device_ns: 0.0 };
        let (mut passing, mut passing_ns) = (0.0, 0.0);
        for (load, usage) in self.loads.iter_mut().zip(usages) {
            spent.add(load.learn(usage, elapsed_ns));
            passing += load.passing();
            passing_ns += usage.passing_ns();
        }
        self.spent.add(spent);
        let spent_ns = spent.sum_ns();
        let target = TARGET * self.share;
        let limit_ns = target * DEBT_NS;
        self.debt_ns = (self.debt_ns + spent_ns - target * elapsed_ns).clamp(0.0, limit_ns);
        let trust = -(-elapsed_ns / SHOWN_NS).exp_m1();
        self.cost_share += (spent_ns / elapsed_ns - self.cost_share) * trust;
        self.passing_share += (passing_ns / elapsed_ns - self.passing_share) * trust;
        self.known += (1.0 - self.known) * trust;

        let free = (target - passing) * (1.0 - self.debt_ns / limit_ns);
        self.deal(free.max(LEAST * target));
        self.loads.iter().map(|load| load.rate)
    }

    /// Deals out a share of the time.
    fn deal(&mut self, share: f64) {
        // Negative: not dealt with yet.
        self.loads.iter_mut().for_each(|load| load.rate = -1.0);
        let (mut left, mut sites) = (share, self.loads.len());
        loop {
            let part = left / sites.max(1) as f64;
            let mut is_done = true;
            for load in self.loads.iter_mut().filter(|load| load.rate < 0.0) {
                let demand = load.demand();
                if demand <= part {
                    load.rate = load.most;
                    (left, sites, is_done) = (left - demand, sites - 1, false);
                }
            }
            if is_done {
                for load in self.loads.iter_mut().filter(|load| load.rate < 0.0) {
                    load.rate = load.most * part / load.demand();
                }
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
