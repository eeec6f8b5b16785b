//! Contexts by slot. As in the driver, handles are reused but ids are not.

use std::collections::HashMap;

use crate::code::{Code, DriverResult};
use crate::handle::Handle;

/// The first context handle, and the distance between handles. A handle identifies a slot, and
/// slots are reused, as the driver reuses addresses. Only the id distinguishes two contexts.
const BASE: Handle = 0x00C0_0000_0000;
const SPACING: Handle = 0x1000;

/// Identifies one context over the lifetime of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextRef {
    pub slot: usize,
    /// The id returned by `cuCtxGetId`, which is never reused.
    pub id: u64,
}

/// A live context.
pub(crate) struct Context {
    pub id: u64,
    pub device: usize,
    pub flags: u32,
    /// Limit on persisting L2 lines, if the program has set one.
    pub persisting_l2_bytes: Option<usize>,
    /// The legacy stream: handle 0 or 1.
    pub legacy: Handle,
    /// Per-thread streams (handle 2) by thread.
    pub per_thread: HashMap<u32, Handle>,
    /// All streams of the context.
    pub streams: Vec<Handle>,
    /// End of the last command on any removed stream.
    pub closed_end: u64,
}

/// The contexts by slot. The first slots hold the devices' primary contexts.
pub(crate) struct Contexts {
    pub slots: Vec<Option<Context>>,
    pub devices: usize,
    pub last_id: u64,
}

/// Reference count and flags of a device's primary context.
#[derive(Clone, Copy, Default)]
pub(crate) struct PrimaryContext {
    pub retained: u32,
    pub flags: u32,
}

impl Contexts {
    pub fn new(devices: usize) -> Self {
        Self { slots: (0..devices).map(|_| None).collect(), devices, last_id: 0 }
    }

    pub fn get(&self, context: ContextRef) -> Option<&Context> {
        self.slots[context.slot].as_ref().filter(|found| found.id == context.id)
    }

    pub fn get_mut(&mut self, context: ContextRef) -> Option<&mut Context> {
        self.slots[context.slot].as_mut().filter(|found| found.id == context.id)
    }

    /// Returns the live context behind `handle`.
    pub fn resolve(&self, handle: Handle) -> DriverResult<ContextRef> {
        let slot = handle.checked_sub(BASE).filter(|offset| offset % SPACING == 0);
        let slot = slot.map(|offset| (offset / SPACING) as usize);
        match slot.and_then(|slot| Some((slot, self.slots.get(slot)?))) {
            Some((slot, Some(context))) => Ok(ContextRef { slot, id: context.id }),
            Some((_, None)) => Err(Code::CONTEXT_IS_DESTROYED),
            None => Err(Code::INVALID_CONTEXT),
        }
    }

    pub fn handle(slot: usize) -> Handle {
        BASE + slot as Handle * SPACING
    }
}
