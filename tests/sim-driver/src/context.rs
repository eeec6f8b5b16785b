//! Contexts: a primary one for each device, those that the program creates, and which is current.

use std::collections::HashMap;

use crate::code::{Answer, Code};
use crate::handle::Handle;
use crate::memory::Place;
use crate::model::Model;
use crate::queue::Moment;
use crate::stream::Stream;

/// Where context handles start, and how far apart they are. A handle stands for a slot, and a slot
/// is used again, as the driver uses an address again: only the id tells two contexts apart.
const BASE: Handle = 0x00C0_0000_0000;
const SPACING: Handle = 0x1000;

/// Names one context for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextRef {
    slot: usize,
    /// What `cuCtxGetId` answers; never used twice.
    pub id: u64,
}

pub(crate) struct Context {
    pub id: u64,
    pub device: usize,
    pub flags: u32,
    /// The limit on persisting lines that the program has set.
    pub persisting_l2_bytes: Option<usize>,
    /// The legacy stream: handle 0 or 1.
    pub legacy: Handle,
    /// The per-thread streams (handle 2) by thread.
    pub per_thread: HashMap<u32, Handle>,
    /// All its streams.
    pub streams: Vec<Handle>,
    /// When the work of the streams that it no longer has ends.
    pub closed_end: u64,
}

/// The contexts by slot. The first slots belong to the devices' primary contexts.
pub(crate) struct Contexts {
    slots: Vec<Option<Context>>,
    devices: usize,
    last_id: u64,
}

/// The primary context of a device, from the outside.
#[derive(Clone, Copy, Default)]
pub(crate) struct Primary {
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

    /// The context that `handle` stands for now.
    pub fn resolve(&self, handle: Handle) -> Answer<ContextRef> {
        let slot = handle.checked_sub(BASE).filter(|offset| offset % SPACING == 0);
        let slot = slot.map(|offset| (offset / SPACING) as usize);
        match slot.and_then(|slot| Some((slot, self.slots.get(slot)?))) {
            Some((slot, Some(context))) => Ok(ContextRef { slot, id: context.id }),
            Some((_, None)) => Err(Code::CONTEXT_IS_DESTROYED),
            None => Err(Code::INVALID_CONTEXT),
        }
    }

    fn handle(slot: usize) -> Handle {
        BASE + slot as Handle * SPACING
    }
}

impl Model {
    fn make_context(&mut self, slot: usize, device: usize, flags: u32) -> ContextRef {
        self.contexts.last_id += 1;
        let context = ContextRef { slot, id: self.contexts.last_id };
        let id = self.next_stream_id();
        let legacy = self.streams.insert(Stream::new(context, 0, 0, id));
        self.contexts.slots[slot] = Some(Context {
            id: context.id,
            device,
            flags,
            persisting_l2_bytes: None,
            legacy,
            per_thread: HashMap::new(),
            streams: vec![legacy],
            closed_end: 0,
        });
        context
    }

    /// Ends a context: its streams lose what they had queued, its memory goes, and every handle
    /// that belongs to it answers 709 from now on.
    fn end_context(&mut self, context: ContextRef) {
        let Some(gone) = self.contexts.slots[context.slot].take_if(|c| c.id == context.id) else {
            return;
        };
        for stream in gone.streams {
            self.abandon_stream(stream);
        }
        self.memory.free_all_of(context);
        self.note("context_gone", context.id.to_string());
    }

    pub fn device(&self, device: i32) -> Answer<usize> {
        usize::try_from(device)
            .ok()
            .filter(|&device| device < self.contexts.devices)
            .ok_or(Code::INVALID_DEVICE)
    }

    pub fn primary_retain(&mut self, device: i32) -> Answer<Handle> {
        let device = self.device(device)?;
        self.devices[device].primary.retained += 1;
        if self.contexts.slots[device].is_none() {
            self.make_context(device, device, self.devices[device].primary.flags);
        }
        Ok(Contexts::handle(device))
    }

    pub fn primary_release(&mut self, device: i32) -> Answer {
        let device = self.device(device)?;
        let primary = &mut self.devices[device].primary;
        primary.retained = primary.retained.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        if primary.retained == 0 { self.primary_end(device) } else { Ok(()) }
    }

    pub fn primary_reset(&mut self, device: i32) -> Answer {
        let device = self.device(device)?;
        self.devices[device].primary.retained = 0;
        self.primary_end(device)
    }

    fn primary_end(&mut self, device: usize) -> Answer {
        if let Some(context) = &self.contexts.slots[device] {
            let context = ContextRef { slot: device, id: context.id };
            self.end_context(context);
        }
        Ok(())
    }

    pub fn primary_state(&self, device: i32) -> Answer<(u32, bool)> {
        let device = self.device(device)?;
        Ok((self.devices[device].primary.flags, self.contexts.slots[device].is_some()))
    }

    pub fn primary_set_flags(&mut self, device: i32, flags: u32) -> Answer {
        let device = self.device(device)?;
        self.devices[device].primary.flags = flags;
        if let Some(context) = &mut self.contexts.slots[device] {
            context.flags = flags;
        }
        Ok(())
    }

    /// A context of the program's own, made current.
    pub fn context_create(&mut self, flags: u32, device: i32) -> Answer<Handle> {
        let device = self.device(device)?;
        let free = (self.contexts.devices..self.contexts.slots.len())
            .find(|&slot| self.contexts.slots[slot].is_none());
        let slot = free.unwrap_or_else(|| {
            self.contexts.slots.push(None);
            self.contexts.slots.len() - 1
        });
        self.make_context(slot, device, flags);
        let handle = Contexts::handle(slot);
        self.caller().current.push(handle);
        Ok(handle)
    }

    pub fn context_destroy(&mut self, handle: Handle) -> Answer {
        let context = self.contexts.resolve(handle)?;
        if context.slot < self.contexts.devices {
            return Err(Code::INVALID_CONTEXT);
        }
        self.end_context(context);
        let current = &mut self.caller().current;
        if current.last() == Some(&handle) {
            current.pop();
        }
        Ok(())
    }

    /// The current context's handle, 0 without one.
    pub fn current_handle(&mut self) -> Handle {
        self.caller().current.last().copied().unwrap_or(0)
    }

    /// The current context, which must be alive.
    pub fn current(&mut self) -> Answer<ContextRef> {
        match self.current_handle() {
            0 => Err(Code::INVALID_CONTEXT),
            handle => self.contexts.resolve(handle),
        }
    }

    pub fn set_current(&mut self, handle: Handle) -> Answer {
        if handle != 0 {
            self.contexts.resolve(handle)?;
        }
        let current = &mut self.caller().current;
        current.pop();
        if handle != 0 {
            current.push(handle);
        }
        Ok(())
    }

    pub fn push_current(&mut self, handle: Handle) -> Answer {
        self.contexts.resolve(handle)?;
        self.caller().current.push(handle);
        Ok(())
    }

    pub fn pop_current(&mut self) -> Answer<Handle> {
        self.caller().current.pop().ok_or(Code::INVALID_CONTEXT)
    }

    /// The context of `handle`, or the current one for a null handle.
    pub fn context_or_current(&mut self, handle: Handle) -> Answer<ContextRef> {
        if handle == 0 { self.current() } else { self.contexts.resolve(handle) }
    }

    /// The context itself; it must be alive.
    pub fn context(&self, context: ContextRef) -> Answer<&Context> {
        self.contexts.get(context).ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    pub fn context_handle(context: ContextRef) -> Handle {
        Contexts::handle(context.slot)
    }

    /// Waits for all work of a context.
    pub fn context_synchronize(&mut self, context: ContextRef) -> Answer {
        let Context { streams, closed_end, .. } = self.context(context)?;
        let (streams, closed) = (streams.clone(), Moment::At(*closed_end));
        for stream in streams {
            // A destroyed stream goes once it is empty, which waiting for another may have brought on.
            if self.streams.get(stream).is_some() {
                self.wait_for_stream(stream)?;
            }
        }
        self.wait_for(&closed)
    }

    /// Device memory, bounded by what the device has.
    pub fn allocate(&mut self, bytes: u64, place: Place, context: ContextRef) -> Answer<u64> {
        let limit = self.constants.memory_bytes;
        if place == Place::Device
            && self.memory.device_bytes().checked_add(bytes).is_none_or(|total| total > limit)
        {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.memory.allocate(bytes, place, context)
    }

    /// Gives memory back, and forgets it in every L2.
    pub fn release(&mut self, address: u64, place: Place) -> Answer {
        let bytes = self.memory.free(address, place)?;
        for device in &mut self.devices {
            device.l2.forget(address, bytes);
        }
        Ok(())
    }
}
