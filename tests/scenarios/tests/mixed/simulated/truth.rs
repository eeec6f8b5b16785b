//! What a program really did, from the program itself and from the simulated driver's trace. Nothing here comes from the
//! report.

use std::collections::BTreeMap;

use gpu_time_scenarios::composition::{Act, Call, Program, Site};
use gpu_time_sim_driver::trace::Command;

use crate::harness::Run;

/// A call of an annotated function.
pub struct Frame {
    pub site: Site,
    pub key: u64,
    pub stream: usize,
    /// The call that this one is inside of.
    pub parent: Option<usize>,
}

/// A function and the value of its key.
pub type Row = (Site, Option<u64>);

/// A kernel of the program.
pub struct Kernel {
    /// The innermost call, if there is one.
    pub frame: Option<usize>,
    pub stream: usize,
    pub enqueued_ns: u64,
    pub start_ns: u64,
    /// Without the time until the stream goes on.
    pub end_ns: u64,
}

impl Kernel {
    pub fn ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}

pub struct Truth {
    pub frames: Vec<Frame>,
    pub kernels: Vec<Kernel>,
}

impl Truth {
    pub fn of(program: &Program, run: &Run) -> Truth {
        let mut truth = Truth { frames: Vec::new(), kernels: Vec::new() };
        let commands: BTreeMap<u32, &Command> = run
            .trace
            .commands()
            .filter(|command| command.kind == "kernel")
            .map(|command| (command.correlation, command))
            .collect();
        for (thread, acts) in program.threads.iter().enumerate() {
            let handle = run.kernel(&format!("mixed::thread {thread}"));
            let launches = run.trace.calls().filter(|call| call.name.starts_with("cuLaunchKernel"));
            let mut launches = launches
                .filter(|call| call.args.get("f").and_then(|f| f.as_u64()) == Some(handle))
                .map(|call| commands[&call.correlation]);
            truth.acts(acts, None, &mut launches);
            assert!(launches.next().is_none(), "the program's own launches are all known");
        }
        truth
    }

    /// Takes the kernels of these acts from the trace, which has them in the order of the thread's launches.
    fn acts<'a>(
        &mut self,
        acts: &[Act],
        frame: Option<usize>,
        launches: &mut impl Iterator<Item = &'a Command>,
    ) {
        for act in acts {
            match act {
                Act::Launch { stream, .. } => {
                    let Command { start_ns, duration_ns, enqueued_ns, .. } =
                        *launches.next().expect("the trace has every launch");
                    let stream = match frame.map(|frame| &self.frames[frame]) {
                        Some(frame) if frame.site.has_stream() => frame.stream,
                        _ => *stream,
                    };
                    let end_ns = start_ns + duration_ns;
                    self.kernels.push(Kernel { frame, stream, enqueued_ns, start_ns, end_ns });
                }
                Act::Call(Call { site, stream, key, acts }) => {
                    let (site, stream, key) = (*site, *stream, *key);
                    self.frames.push(Frame { site, key, stream, parent: frame });
                    self.acts(acts, Some(self.frames.len() - 1), launches);
                }
                Act::Return => return,
                Act::Pass(_) | Act::EndTurn(_) | Act::Await => {}
            }
        }
    }

    /// Returns the calls from this one outwards.
    pub fn outwards(&self, frame: Option<usize>) -> impl Iterator<Item = usize> {
        std::iter::successors(frame, |&frame| self.frames[frame].parent)
    }

    /// Returns the same without spans, of which nothing is known outside of records.
    pub fn path_without_spans(&self, frame: usize) -> Vec<&'static str> {
        let is_span = |name: &&str| Site::Span.name().ends_with(&format!("::{name}"));
        self.path_of(frame).into_iter().filter(|name| !is_span(name)).collect()
    }

    /// Returns the row in which a call is.
    pub fn row_of(&self, frame: usize) -> Row {
        let frame = &self.frames[frame];
        (frame.site, (frame.site == Site::Keyed).then_some(frame.key))
    }

    /// Returns the names from the outermost call to this one.
    pub fn path_of(&self, frame: usize) -> Vec<&'static str> {
        let name = |frame: usize| self.frames[frame].site.name().rsplit("::").next();
        let mut names: Vec<_> = self.outwards(Some(frame)).filter_map(name).collect();
        names.reverse();
        names
    }

    /// Returns the kernels of each call, with those of the calls inside.
    pub fn kernels_inside(&self) -> Vec<Vec<&Kernel>> {
        let mut inside = vec![Vec::new(); self.frames.len()];
        for kernel in &self.kernels {
            self.outwards(kernel.frame).for_each(|frame| inside[frame].push(kernel));
        }
        inside
    }
}

/// Returns the time during which at least one of these kernels ran.
pub fn union_ns<'a>(kernels: impl Iterator<Item = &'a Kernel>) -> u64 {
    let mut intervals: Vec<_> = kernels.map(|kernel| (kernel.start_ns, kernel.end_ns)).collect();
    intervals.sort_unstable();
    let (mut sum, mut last) = (0, 0);
    for (start, end) in intervals {
        sum += end.saturating_sub(start.max(last));
        last = last.max(end);
    }
    sum
}

/// The true time of a path of the call tree, and how far the report says that it may be off apart from its standard
/// errors.
#[derive(Default)]
pub struct Path {
    pub calls: f64,
    pub self_ns: f64,
    pub self_within: f64,
    pub inclusive_ns: f64,
    pub inclusive_within: f64,
    /// The times of all of its kernels, whether or not they run at once.
    pub launched_ns: f64,
    pub inclusive_launched_ns: f64,
}

/// Adds the own times of the paths inside to each path.
pub fn add_inclusive(paths: &mut BTreeMap<Vec<&'static str>, Path>) {
    for path in paths.keys().cloned().collect::<Vec<_>>() {
        let Path { self_ns, self_within: within, launched_ns, .. } = paths[&path];
        for length in 1..=path.len() {
            let around = paths.entry(path[..length].to_vec()).or_default();
            around.inclusive_ns += self_ns;
            around.inclusive_within += within;
            around.inclusive_launched_ns += launched_ns;
        }
    }
}
