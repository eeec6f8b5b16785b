//! Programs from seeds.

use fastrand::Rng;
use gpu_time_scenarios::composition::{Act, Call, Program, Site};

/// A program, and how it is run.
pub struct Plan {
    pub program: Program,
    /// `GPU_TIME_RECORD`, or `None` if it is not set.
    pub record: Option<String>,
    /// What the program has, besides functions with and without a stream.
    pub features: Vec<Feature>,
}

/// What some programs have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feature {
    /// `main` is annotated.
    Main,
    /// Functions on several streams call each other.
    Streams,
    /// Several threads call the same functions.
    Threads,
    /// Functions name their stream.
    Named,
    /// Functions have a bracket for each launch.
    Launches,
    /// Functions have rows for the values of a key.
    Keyed,
    /// Functions hold their stream.
    Held,
    /// Functions empty the L2.
    Cold,
    /// Functions that hold their stream or empty the L2 are called inside of others.
    PreparedInside,
    /// Functions are async.
    Async,
    /// There are spans of `tracing`.
    Spans,
    /// Functions return before their last launch.
    Returns,
    /// The host works inside of functions.
    Late,
}

impl Feature {
    pub const ALL: [Feature; 13] = [
        Feature::Main,
        Feature::Streams,
        Feature::Threads,
        Feature::Named,
        Feature::Launches,
        Feature::Keyed,
        Feature::Held,
        Feature::Cold,
        Feature::PreparedInside,
        Feature::Async,
        Feature::Spans,
        Feature::Returns,
        Feature::Late,
    ];

    /// Returns the functions that the feature adds.
    fn sites(self) -> &'static [Site] {
        match self {
            Feature::Named => &[Site::Named],
            Feature::Launches => &[Site::Launches],
            Feature::Keyed => &[Site::Keyed],
            Feature::Held => &[Site::Held],
            Feature::Cold => &[Site::Cold],
            Feature::Async => &[Site::Awaiting, Site::RecordedAwaiting],
            Feature::Spans => &[Site::Span],
            _ => &[],
        }
    }
}

/// The number of turns.
const TURNS: usize = 40;
/// A kernel outside of annotated functions keeps each stream busy until a turn has been enqueued.
const BLOCKER_NS: u64 = 1_000_000;
/// The longest idle time after a turn.
const MOST_IDLE_NS: u64 = 40_000_000;

struct Generator {
    rng: Rng,
    features: Vec<Feature>,
    sites: Vec<Site>,
    /// The streams of the thread.
    streams: Vec<usize>,
}

/// Returns the program of this seed. Features in `without` are left out.
pub fn generate(seed: u64, without: &[Feature]) -> Plan {
    let mut rng = Rng::with_seed(seed);
    let records = [Some("on"), Some("off"), Some("5ms/20ms"), None];
    let record = rng.choice(records).expect("a setting").map(str::to_owned);
    let mut features: Vec<_> = Feature::ALL.into_iter().filter(|_| rng.u32(..4) == 0).collect();
    // Without recording, there are no spans.
    features.retain(|of| !without.contains(of));
    // Work of another thread, outside of functions, would be that of a span's helper threads.
    if record.as_deref() == Some("off") || features.contains(&Feature::Threads) {
        features.retain(|of| *of != Feature::Spans);
    }
    let mut sites = vec![Site::Body, Site::Inner, Site::Recorded, Site::RecordedInner];
    sites.extend(features.iter().flat_map(|feature| feature.sites()));
    let has = |feature| features.contains(&feature);
    let threads = if has(Feature::Threads) { 3 } else { 1 };
    let streams = if has(Feature::Streams) { 3 } else { 1 };
    let (is_annotated, spans) = (has(Feature::Main), has(Feature::Spans));
    let idle: Vec<u64> = (0..TURNS).map(|_| rng.u64(MOST_IDLE_NS / 8..MOST_IDLE_NS)).collect();
    let mut generator = Generator { rng, features, sites, streams: Vec::new() };
    let mut of_thread = |thread: usize| {
        generator.streams = (thread * streams..(thread + 1) * streams).collect();
        // What is done once, such as the calibration, is done in the first call.
        let mut acts: Vec<Act> = Vec::new();
        if thread == 0 {
            acts.push(Act::Call(generator.first()));
        }
        acts.push(Act::EndTurn(0));
        acts.extend(idle.iter().flat_map(|idle_ns| generator.turn(*idle_ns)));
        if thread == 0 && is_annotated {
            acts = vec![Act::Call(Call { site: Site::Main, stream: 0, key: 0, acts })];
        }
        acts
    };
    let threads: Vec<_> = (0..threads).map(&mut of_thread).collect();
    let program = Program { streams: streams * threads.len(), spans, threads };
    Plan { program, record, features: generator.features }
}

impl Generator {
    fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    fn first(&mut self) -> Call {
        let stream = self.streams[0];
        Call { site: Site::First, stream, key: 0, acts: vec![self.launch(stream)] }
    }

    /// Some calls, and a wait for the device.
    fn turn(&mut self, idle_ns: u64) -> Vec<Act> {
        let blockers = self.streams.iter().map(|&stream| Act::Launch { stream, ns: BLOCKER_NS });
        let mut acts: Vec<Act> = blockers.collect();
        acts.extend((0..self.rng.usize(1..4)).map(|_| Act::Call(self.call(3, false))));
        acts.push(Act::EndTurn(idle_ns));
        acts
    }

    /// A call, with others inside up to this depth. `is_inside` if a function with a stream is around it.
    fn call(&mut self, depth: usize, is_inside: bool) -> Call {
        let has_prepared = !is_inside || self.has(Feature::PreparedInside);
        let is_allowed = |site: &Site| has_prepared || !matches!(site, Site::Held | Site::Cold);
        let sites: Vec<Site> = self.sites.iter().copied().filter(is_allowed).collect();
        let site = *self.rng.choice(&sites).expect("a site");
        let stream = *self.rng.choice(&self.streams).expect("a stream");
        let mut acts = vec![self.launch_in(site, stream)];
        for _ in 0..self.rng.usize(..4) {
            let act = if depth > 0 && self.rng.bool() {
                Act::Call(self.call(depth - 1, is_inside || site.has_stream()))
            } else {
                self.launch_in(site, stream)
            };
            acts.push(act);
        }
        if self.has(Feature::Late) && self.rng.u32(..8) == 0 {
            acts.insert(self.rng.usize(..acts.len()), Act::Pass(self.rng.u64(..2 * BLOCKER_NS)));
        }
        if site.is_async() {
            acts.insert(self.rng.usize(..acts.len()), Act::Await);
        }
        if self.has(Feature::Returns) && self.rng.bool() {
            acts.extend([Act::Return, self.launch(stream)]);
        }
        Call { site, stream, key: self.rng.u64(..3), acts }
    }

    /// A launch in a function, which is on the function's stream if it has one.
    fn launch_in(&mut self, site: Site, stream: usize) -> Act {
        let any = *self.rng.choice(&self.streams).expect("a stream");
        self.launch(if site.has_stream() { stream } else { any })
    }

    fn launch(&mut self, stream: usize) -> Act {
        Act::Launch { stream, ns: 1_000 * self.rng.u64(2..60) }
    }
}
