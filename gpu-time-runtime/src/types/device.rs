//! The device that a call ran on.

/// Where a call ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum DeviceId {
    /// A CUDA device by its ordinal.
    Cuda(u32),
    /// A context that would not name its device.
    Unknown,
    /// No stream: the host clock told the time.
    Host,
}
