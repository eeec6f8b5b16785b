//! The log of observable behaviour, on stdout.

/// Writes one line of observable behaviour.
macro_rules! log {
    ($($arg:tt)*) => { println!("  {}", format_args!($($arg)*)) };
}
pub(crate) use log;
