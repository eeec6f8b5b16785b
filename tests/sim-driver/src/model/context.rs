//! Contexts: retaining and resetting primary contexts, creating contexts, and each thread's stack
//! of current contexts. Ending a context invalidates everything that belongs to it.

use std::collections::HashMap;

use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::memory::MemoryKind;
use crate::model::Model;
use crate::object::context::{Context, ContextRef, Contexts};
use crate::object::queue::Moment;
use crate::object::stream::Stream;

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

    /// Ends a context: drops the commands queued on its streams and frees its memory. From then on,
    /// using any of its handles fails with 709, until a new context reuses the context's own handle.
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

    pub fn device(&self, device: i32) -> DriverResult<usize> {
        usize::try_from(device)
            .ok()
            .filter(|&device| device < self.contexts.devices)
            .ok_or(Code::INVALID_DEVICE)
    }

    pub fn primary_retain(&mut self, device: i32) -> DriverResult<Handle> {
        let device = self.device(device)?;
        self.devices[device].primary.retained += 1;
        if self.contexts.slots[device].is_none() {
            self.make_context(device, device, self.devices[device].primary.flags);
        }
        Ok(Contexts::handle(device))
    }

    pub fn primary_release(&mut self, device: i32) -> DriverResult {
        let device = self.device(device)?;
        let primary = &mut self.devices[device].primary;
        primary.retained = primary.retained.checked_sub(1).ok_or(Code::INVALID_CONTEXT)?;
        if primary.retained == 0 { self.primary_end(device) } else { Ok(()) }
    }

    pub fn primary_reset(&mut self, device: i32) -> DriverResult {
        let device = self.device(device)?;
        self.devices[device].primary.retained = 0;
        self.primary_end(device)
    }

    fn primary_end(&mut self, device: usize) -> DriverResult {
        if let Some(context) = &self.contexts.slots[device] {
            let context = ContextRef { slot: device, id: context.id };
            self.end_context(context);
        }
        Ok(())
    }

    pub fn primary_state(&self, device: i32) -> DriverResult<(u32, bool)> {
        let device = self.device(device)?;
        Ok((self.devices[device].primary.flags, self.contexts.slots[device].is_some()))
    }

    pub fn primary_set_flags(&mut self, device: i32, flags: u32) -> DriverResult {
        let device = self.device(device)?;
        self.devices[device].primary.flags = flags;
        if let Some(context) = &mut self.contexts.slots[device] {
            context.flags = flags;
        }
        Ok(())
    }

    /// Creates a context and makes it current.
    pub fn context_create(&mut self, flags: u32, device: i32) -> DriverResult<Handle> {
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

    pub fn context_destroy(&mut self, handle: Handle) -> DriverResult {
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

    /// Returns the handle of the current context, or 0.
    pub fn current_handle(&mut self) -> Handle {
        self.caller().current.last().copied().unwrap_or(0)
    }

    /// Returns the current context; fails if it is no longer alive.
    pub fn current(&mut self) -> DriverResult<ContextRef> {
        match self.current_handle() {
            0 => Err(Code::INVALID_CONTEXT),
            handle => self.contexts.resolve(handle),
        }
    }

    pub fn set_current(&mut self, handle: Handle) -> DriverResult {
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

    pub fn push_current(&mut self, handle: Handle) -> DriverResult {
        self.contexts.resolve(handle)?;
        self.caller().current.push(handle);
        Ok(())
    }

    pub fn pop_current(&mut self) -> DriverResult<Handle> {
        self.caller().current.pop().ok_or(Code::INVALID_CONTEXT)
    }

    /// Returns the context with this handle, or the current one for a null handle.
    pub fn context_or_current(&mut self, handle: Handle) -> DriverResult<ContextRef> {
        if handle == 0 { self.current() } else { self.contexts.resolve(handle) }
    }

    /// Returns the context; fails if it is no longer alive.
    pub fn context(&self, context: ContextRef) -> DriverResult<&Context> {
        self.contexts.get(context).ok_or(Code::CONTEXT_IS_DESTROYED)
    }

    pub fn context_handle(context: ContextRef) -> Handle {
        Contexts::handle(context.slot)
    }

    /// Waits for all work in a context.
    pub fn context_synchronize(&mut self, context: ContextRef) -> DriverResult {
        let Context { streams, closed_end, .. } = self.context(context)?;
        let (streams, closed) = (streams.clone(), Moment::Known(*closed_end));
        for stream in streams {
            // Waiting for another stream may have emptied a destroyed one, which removes it.
            if self.streams.get(stream).is_some() {
                self.wait_for_stream(stream)?;
            }
        }
        self.wait_for(&closed)
    }

    /// Allocates memory. The total is limited to the device's memory.
    pub fn allocate(
        &mut self,
        bytes: u64,
        kind: MemoryKind,
        context: ContextRef,
    ) -> DriverResult<u64> {
        let limit = self.constants.memory_bytes;
        if kind == MemoryKind::Device
            && self.memory.device_bytes().checked_add(bytes).is_none_or(|total| total > limit)
        {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.memory.allocate(bytes, kind, context)
    }

    /// Frees memory, and removes its lines from every L2.
    pub fn release(&mut self, address: u64, kind: MemoryKind) -> DriverResult {
        let bytes = self.memory.free(address, kind)?;
        for device in &mut self.devices {
            device.l2.forget(address, bytes);
        }
        Ok(())
    }
}
