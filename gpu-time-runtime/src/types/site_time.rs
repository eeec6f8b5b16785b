//! The time of a function's work on a device.

/// The time for which the work of an annotated function ran, without that of the functions inside, as windows tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SiteTime {
    /// The id of its site.
    pub site: u32,
    pub ns: f64,
    /// The standard error. `None` if it is not known.
    pub error_ns: Option<f64>,
    /// It is an estimate from windows at random times.
    pub is_drawn: bool,
}

impl SiteTime {
    /// Adds the time in other windows.
    #[cfg(feature = "kernels")]
    pub fn add(&mut self, other: SiteTime) {
        self.ns += other.ns;
        self.is_drawn |= other.is_drawn;
        self.error_ns = self.error_ns.zip(other.error_ns).map(|(one, other)| one.hypot(other));
    }
}
