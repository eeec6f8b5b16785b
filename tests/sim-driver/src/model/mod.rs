//! The simulated machine and the driver's rules. There is one file per kind of object, each
//! extending [`Model`] with the operations called by the exported functions in `api`.

mod capture;
mod context;
mod event;
mod graph;
mod machine;
mod module;
mod observation;
mod queue;
mod stream;
mod work;

pub(crate) use machine::Model;
