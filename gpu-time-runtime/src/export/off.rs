//! The `export` module of builds without the `metrics` feature. It publishes nothing.

pub(crate) fn arm() {}

pub(crate) fn publish() {}
