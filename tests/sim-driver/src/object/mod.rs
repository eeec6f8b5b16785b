//! The driver's objects as plain data: contexts, streams, events, modules, captures and graphs, and
//! the commands in a stream's queue. The rules that act on them are in `model`.

pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod module;
pub(crate) mod queue;
pub(crate) mod stream;
pub(crate) mod work;
