//! Programs from seeds.

use fastrand::Rng;
use gpu_time_scenarios::composition::{Act, Call, Program, Site};

/// A program, and how it is run.
pub struct Plan {
    pub program: Program,
    /// `GPU_TIME_RECORD`, or `None` if it is not set.
    pub record: Option<String>,
}

/// Kernels outside of annotated functions that keep a stream busy until a turn is enqueued.
const BLOCKER_NS: u64 = 1_000_000;

struct Generator {
    rng: Rng,
    sites: Vec<Site>,
    streams: usize,
}

pub fn generate(seed: u64) -> Plan {
    let mut rng = Rng::with_seed(seed);
    let records = [Some("on"), Some("off"), Some("5ms/20ms"), None];
    let record = rng.choice(records).expect("a setting").map(str::to_owned);
    let sites = vec![Site::Body, Site::Inner, Site::Recorded, Site::RecordedInner];
    let is_annotated = rng.bool();
    let mut generator = Generator { rng, sites, streams: 1 };
    let acts = (0..40).flat_map(|_| generator.turn()).collect();
    let main = Call { site: Site::Main, stream: 0, key: 0, acts };
    let acts = if is_annotated { vec![Act::Call(main)] } else { main.acts };
    let program = Program { streams: 1, spans: false, threads: vec![acts] };
    Plan { program, record }
}

impl Generator {
    /// Some calls, and a wait for the device.
    fn turn(&mut self) -> Vec<Act> {
        let blockers = (0..self.streams).map(|stream| Act::Launch { stream, ns: BLOCKER_NS });
        let mut acts: Vec<Act> = blockers.collect();
        acts.extend((0..self.rng.usize(1..4)).map(|_| Act::Call(self.call(3))));
        acts.push(Act::EndTurn(1_000_000 * self.rng.u64(5..40)));
        acts
    }

    fn call(&mut self, depth: usize) -> Call {
        let site = *self.rng.choice(&self.sites).expect("a site");
        let stream = self.rng.usize(..self.streams);
        let mut acts = vec![self.launch(stream)];
        for _ in 0..self.rng.usize(..4) {
            let act = if depth > 0 && self.rng.bool() {
                Act::Call(self.call(depth - 1))
            } else {
                self.launch(stream)
            };
            acts.push(act);
        }
        Call { site, stream, key: self.rng.u64(..3), acts }
    }

    fn launch(&mut self, stream: usize) -> Act {
        Act::Launch { stream, ns: 1_000 * self.rng.u64(2..60) }
    }
}
