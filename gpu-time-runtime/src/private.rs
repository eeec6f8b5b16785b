//! Exactly what generated code may name. Not a public interface: it changes without notice.

pub use core;
pub use inventory;

pub use crate::__gpu_time_target as target;
pub use crate::call::decide::Gate;
pub use crate::call::enter::{enter, enter_detailed, enter_host, enter_host_detailed};
pub use crate::call::first::met;
pub use crate::call::outcome::*;
pub use crate::call::scope::{Scope, Token, awaited, awaiting, stop, stop_statement};
pub use crate::call::stream::*;
pub use crate::site::callsite::CallSite;
pub use crate::site::registry::SiteRef;
pub use crate::types::attribute::{Clock, Cold, Hold, Launch, ScopeKind, Spec};
pub use crate::types::key::KeyText;
pub use crate::types::sampling::Sampling;
pub use crate::types::workload::{Amount, Details, Workload, evaluated};
