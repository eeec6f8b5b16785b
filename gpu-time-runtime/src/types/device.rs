//! The device that ran a call.

use std::fmt;

/// The device that ran a call, or the host. Displayed as in reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum DeviceId {
    /// A CUDA device, by its ordinal.
    Cuda(u32),
    /// An unknown device, for example because the call used no context.
    #[default]
    Unknown,
    /// The host clock timed the call.
    Host,
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceId::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            DeviceId::Unknown => f.write_str("cuda:?"),
            DeviceId::Host => f.write_str("host"),
        }
    }
}
