//! Items that generated code may name. This is not a public interface and may change without
//! notice.

pub use core;
pub use inventory;

pub use crate::__gpu_time_source as source;
pub use crate::call::brackets::{Token, stop, stop_statement};
pub use crate::call::enter::{
    enter_body, enter_graph, enter_host, enter_kernels, enter_launches, enter_sync, enter_unnamed,
};
pub use crate::call::failure::*;
pub use crate::call::guard::Guard;
pub use crate::call::scope::{Scope, awaited, awaiting};
pub use crate::call::source::{CallDetails, NoDetails};
pub use crate::call::stream::*;
pub use crate::site::callsite::CallSite;
pub use crate::site::registry::SiteRef;
pub use crate::types::attribute::{Clock, Cold, Hold, Launch, Remark, ScopeKind, Spec};
pub use crate::types::gpu_stream::GraphStream;
pub use crate::types::kernel_rate::KernelRate;
pub use crate::types::key::KeyText;
pub use crate::types::sampling::Sampling;
pub use crate::types::workload::{Amount, Workload, evaluated};
