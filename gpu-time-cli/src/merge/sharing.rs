//! Detects processes that used one GPU at the same time.

use gpu_time_report::{Device, Process};

/// The warning about a device on which they did. Each process records only its own work, so what the others ran counts
/// as idle time.
pub const WARNING: &str = "processes used this GPU at the same time: its busy and idle shares are means over the \
                           processes, each of which knows only its own work";

/// The processes that used the GPUs of one merged device.
#[derive(Default)]
pub struct Users(Vec<User>);

/// A process that used a GPU, ordered by GPU and then by time.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct User {
    uuid: String,
    from_ms: u64,
    to_ms: u64,
}

impl Users {
    /// Adds processes that used this device. Does nothing if it is not known which GPU it was.
    pub fn add<'a>(&mut self, device: &Device, processes: impl Iterator<Item = &'a Process>) {
        let Some(uuid) = device.uuid.as_deref() else { return };
        let user = |[from_ms, to_ms]: [u64; 2]| User { uuid: uuid.to_owned(), from_ms, to_ms };
        self.0.extend(processes.filter_map(Process::period_ms).map(user));
    }

    /// Returns `true` if two of the processes used the same GPU at the same time.
    pub fn have_shared(mut self) -> bool {
        self.0.sort();
        // If any two overlap, so do two neighbours: the one that begins before the other, and its successor.
        let is_shared =
            |pair: &[User]| pair[0].uuid == pair[1].uuid && pair[1].from_ms < pair[0].to_ms;
        self.0.windows(2).any(is_shared)
    }
}
