//! Items that generated code may name. This is not a public interface and may change without
//! notice.

pub use core;
pub use inventory;

pub use crate::__gpu_time_source as source;
pub use crate::call::enter::{enter, enter_on};
pub use crate::call::failure::*;
pub use crate::call::guard::Guard;
pub use crate::call::launch::{Token, stop};
pub use crate::call::scope::{Scope, awaited, awaiting};
pub use crate::call::source::{CallDetails, NoDetails};
pub use crate::call::stream::*;
pub use crate::site::callsite::CallSite;
pub use crate::site::registry::SiteRef;
pub use crate::types::attribute::{Clock, Cold, Hold, LaunchSpec, Remark, ScopeKind, Spec};
pub use crate::types::gpu_stream::GraphStream;
pub use crate::types::key::KeyText;
pub use crate::types::sampling::Sampling;
pub use crate::types::workload::{Amount, Workload, evaluated};

/// Describes the value of a `stream` expression, given by reference, as a
/// [`Source`](crate::call::source::Source).
///
/// The stream is `lent` if it outlives the call. Otherwise it is `owned` and may be dropped at any
/// time. The reference prevents a move out of a place expression, and the `match` keeps the
/// expression's temporaries alive for as long as they are needed. A pointer is followed only once, because a
/// user's pointer may lead elsewhere the next time: the guard belongs to a pointer on the way to the stream. The
/// variables have a prefix, because hygiene does not distinguish a pattern from a user's constant.
#[doc(hidden)]
#[macro_export]
macro_rules! __gpu_time_source {
    ($value:expr, $owner:ident, $query:expr) => {
        match $value {
            __gpu_time_value => {
                use $crate::private::{NoStream as _, RawHandle as _, Untracking as _, pointer};
                match $crate::private::given(__gpu_time_value).gpu_time_stream() {
                    $crate::private::core::option::Option::Some(__gpu_time_first) => {
                        let __gpu_time_second = pointer(__gpu_time_first).gpu_time_target();
                        let __gpu_time_third = pointer(__gpu_time_second).gpu_time_target();
                        let __gpu_time_fourth = pointer(__gpu_time_third).gpu_time_target();
                        let __gpu_time_last = pointer(__gpu_time_fourth).gpu_time_target();
                        match $crate::private::candidate(__gpu_time_last).gpu_time_candidate() {
                            __gpu_time_candidate => {
                                let __gpu_time_stream =
                                    $crate::private::behind(&__gpu_time_candidate);
                                let (__gpu_time_handle, __gpu_time_stream) =
                                    __gpu_time_stream.cu_stream().gpu_time_of(__gpu_time_stream);
                                let __gpu_time_context =
                                    $crate::private::behind(__gpu_time_stream.context());
                                let __gpu_time_handles =
                                    (__gpu_time_handle, __gpu_time_context.cu_ctx().gpu_time_address());
                                $query.found(
                                    __gpu_time_stream,
                                    __gpu_time_context,
                                    __gpu_time_handles,
                                    || {
                                        __gpu_time_context.is_in_multi_stream_mode()
                                            && __gpu_time_context.is_event_tracking()
                                    },
                                    |__gpu_time_handle| {
                                        $crate::__gpu_time_source!(
                                            @$owner __gpu_time_handle, __gpu_time_first,
                                            __gpu_time_second, __gpu_time_third
                                        )
                                    },
                                )
                            }
                        }
                    }
                    $crate::private::core::option::Option::None => $query.host(),
                }
            }
        }
    };
    (@lent $handle:ident, $($pointer:ident),*) => {
        ()
    };
    (@owned $handle:ident, $($pointer:ident),*) => {
        $crate::private::owner(($($pointer),*)).gpu_time_guard($handle)
    };
}
