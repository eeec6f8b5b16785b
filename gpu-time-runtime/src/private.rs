//! Exactly what generated code may name. Not a public interface: it changes without notice.

pub use core;
pub use inventory;

pub use crate::__gpu_time_target as target;
pub use crate::enter::{enter, enter_detailed, enter_host, enter_host_detailed, met};
pub use crate::gate::Gate;
pub use crate::key::KeyText;
pub use crate::probe::*;
pub use crate::registry::SiteRef;
pub use crate::sampling::Sampling;
pub use crate::scope::{Scope, Token, awaited, awaiting, stop, stop_statement};
pub use crate::site::{CallSite, Clock, Cold, Hold, Launch, ScopeKind, Spec};
pub use crate::stream::*;
pub use crate::workload::{Amount, Details, Workload, evaluated};
