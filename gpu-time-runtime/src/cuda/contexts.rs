//! The registry of contexts: finds the context of a call, and registers a context when it is first
//! seen.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::base::background;
use crate::base::lock::{Mutex, Rank, locked, locked_by};
use crate::cuda::context::Context;
use crate::cuda::device;
use crate::cuda::driver::{self, context_of, id_of};
use crate::gpu::{Fault, Gpu};
use crate::types::device::DeviceId;
use crate::types::handles::Stream;

/// The number of destroyed contexts per device that stay listed for the report. A program may
/// create contexts again and again, and the later ones add nothing new to the report.
const MAX_DESTROYED: usize = 8;

/// Never locked during a driver call, so that a report does not have to wait for the driver.
static CONTEXTS: Mutex<Vec<&'static Context>> = Mutex::new(Rank::Contexts, Vec::new());
/// The device of all [`CONTEXTS`]: its ordinal plus 1, or one of the two below. Every call without a stream reads it.
static ONLY_DEVICE: AtomicU64 = AtomicU64::new(NO_DEVICE);
const NO_DEVICE: u64 = 0;
const SEVERAL_DEVICES: u64 = u64::MAX;
/// Locked while a new context is registered.
static REGISTRATION: Mutex<()> = Mutex::new(Rank::NewContext, ());

thread_local! {
    static RECENT: Cell<Option<&'static Context>> = const { Cell::new(None) };
}

/// Returns every existing context, and the first few destroyed ones on each device.
pub(crate) fn contexts() -> Vec<&'static Context> {
    locked(&CONTEXTS).clone()
}

/// Releases every held stream. With `forever`, later holds are released as well.
pub(crate) fn release_holds(forever: bool) {
    contexts().into_iter().for_each(|context| context.release_holds(forever));
}

/// Returns the device of all contexts; `Unknown` if there is none, or if they are on several devices.
#[inline]
pub(crate) fn only_device() -> DeviceId {
    match ONLY_DEVICE.load(Relaxed) {
        NO_DEVICE | SEVERAL_DEVICES => DeviceId::Unknown,
        ordinal => DeviceId::Cuda((ordinal - 1) as u32),
    }
}

/// Returns the value of [`ONLY_DEVICE`] for contexts on the devices with these ordinals.
fn only_of(mut ordinals: impl Iterator<Item = u32>) -> u64 {
    let Some(first) = ordinals.next() else { return NO_DEVICE };
    if ordinals.all(|other| other == first) { u64::from(first) + 1 } else { SEVERAL_DEVICES }
}

/// Returns the context with this handle if it was the last one that the calling thread looked up.
#[inline]
pub(crate) fn recent(handle: usize) -> Option<&'static Context> {
    let recent = RECENT.get()?;
    (recent.handle == handle && recent.is_still_the_same()).then_some(recent)
}

/// Does the same, but does not ask the driver about a context that is not current, which may be gone.
pub(crate) fn recent_current(handle: usize) -> Option<&'static Context> {
    let is_recent = RECENT.get().is_some_and(|recent| recent.handle == handle);
    if is_recent && driver::is_current(handle) { recent(handle) } else { None }
}

/// Makes the calling thread look up its context on its next call.
pub(crate) fn forget_recent() {
    RECENT.set(None);
}

/// Returns the context of a stream. `handle` is the context's handle, or 0 if the caller knows only
/// the stream.
pub(crate) fn find(stream: Stream, handle: usize) -> Result<&'static Context, Fault> {
    let handle = if handle == 0 { context_of(stream)? } else { handle };
    let id = id_of(handle)?;
    let context = match registered(handle, id) {
        Some(context) => context,
        None => background::aside(|| register(handle, id))?,
    };
    // A context that is not calibrated yet, for example because of a capture, is looked up again by
    // the next call, which may calibrate it.
    RECENT.set(Some(context).filter(|context| context.is_calibrated()));
    Ok(context)
}

/// Returns a context that was used before, if it is sure to exist still: it is current, or the primary context of a
/// device. The driver must not be asked about any other, because the handle of a destroyed context means nothing.
pub(crate) fn find_existing(handle: usize) -> Option<&'static Context> {
    if let Some(context) = recent_current(handle) {
        return Some(context);
    }
    if driver::is_current(handle) {
        return find(Stream(0), handle).ok();
    }
    let retained = contexts().into_iter().find(|of| of.handle == handle && of.is_retained());
    retained.or_else(|| {
        let mut active = device::active().into_iter();
        let ordinal = active.find(|ordinal| driver::retain_if_primary(handle, *ordinal))?;
        let found = find(Stream(0), handle).ok();
        // The registry has retained it as well.
        driver::release(ordinal);
        found
    })
}

/// Returns the primary context of a device, which is created if needed. CUDA must be initialized.
#[cfg(all(feature = "kernels", feature = "nvml"))]
pub(crate) fn primary(ordinal: u32) -> Result<&'static Context, Fault> {
    find(Stream(0), crate::cuda::driver::retain_primary(ordinal)?)
}

/// Returns the registered context with this handle and id. Without ids, a new context at the
/// address of a dead one has the same handle, so a dead context is never returned.
fn registered(handle: usize, id: Option<u64>) -> Option<&'static Context> {
    let is_it =
        |c: &&'static Context| (c.handle, c.id) == (handle, id) && (id.is_some() || !c.is_gone());
    locked(&CONTEXTS).iter().copied().find(is_it)
}

fn register(handle: usize, id: Option<u64>) -> Result<&'static Context, Fault> {
    let registration = locked(&REGISTRATION);
    if let Some(context) = registered(handle, id) {
        return Ok(context);
    }
    retire_destroyed(handle);
    let context: &'static Context = Box::leak(Box::new(Context::new(handle, id)?));
    let mut contexts = locked(&CONTEXTS);
    contexts.push(context);
    ONLY_DEVICE.store(only_of(contexts.iter().map(|context| context.device.ordinal)), Relaxed);
    drop(contexts);
    drop(registration);
    Ok(context)
}

/// Frees the resources of destroyed contexts, and removes all but the first few from the list.
/// `handle` belongs to the new context: an older one with this handle has been destroyed.
fn retire_destroyed(handle: usize) {
    let mut retired = Vec::new();
    for context in contexts() {
        if context.handle == handle {
            context.give_up();
        }
        if context.is_destroyed() && context.retire() {
            retired.push(context);
        }
    }
    keep_first(&mut locked(&CONTEXTS), |context| {
        let is_retired = retired.iter().any(|retired| std::ptr::eq(*retired, *context));
        is_retired.then(|| (context.device.ordinal, context.calibration().is_some()))
    });
}

/// Removes all but the first few destroyed contexts on each device. For a destroyed context,
/// `destroyed` returns its device's ordinal and `true` if it was calibrated. The first calibrated
/// one is always kept, because its bias is the one that the report subtracts.
fn keep_first<T>(contexts: &mut Vec<T>, destroyed: impl Fn(&T) -> Option<(u32, bool)>) {
    let mut kept: HashMap<u32, (usize, bool)> = HashMap::new();
    contexts.retain(|context| {
        let Some((ordinal, is_calibrated)) = destroyed(context) else { return true };
        let (count, has_calibrated) = kept.entry(ordinal).or_default();
        let is_kept = *count < MAX_DESTROYED || (is_calibrated && !*has_calibrated);
        if is_kept {
            *count += 1;
            *has_calibrated |= is_calibrated;
        }
        is_kept
    });
}

/// Returns `true` if another thread is still registering a context when the deadline passes.
pub(crate) fn is_registering(deadline: Instant) -> bool {
    locked_by(&REGISTRATION, deadline).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_device_is_that_of_all_contexts() {
        let only = |ordinals: &[u32]| only_of(ordinals.iter().copied());
        assert_eq!([only(&[]), only(&[0]), only(&[2, 2])], [NO_DEVICE, 1, 3]);
        assert_eq!(only(&[0, 0, 1]), SEVERAL_DEVICES);
    }

    #[test]
    fn destroyed_contexts_are_bounded() {
        let is_live = |n: &usize| n.is_multiple_of(2_500);
        let destroyed = |n: &usize| (!is_live(n)).then_some((*n as u32 % 2, *n >= 5_000));
        let mut contexts = Vec::new();
        for n in 0..10_000 {
            contexts.push(n);
            keep_first(&mut contexts, destroyed);
            assert!(contexts.len() <= 4 + 2 * (MAX_DESTROYED + 1), "{contexts:?}");
        }
        assert_eq!(contexts.iter().filter(|n| is_live(n)).count(), 4);
        // The first few contexts on each device stay, and so does the first calibrated one.
        assert!(contexts.starts_with(&[0, 1, 2, 3, 4]), "{contexts:?}");
        assert!(contexts.contains(&5_001) && contexts.contains(&5_002), "{contexts:?}");
    }
}
