//! Memory functions: allocation, copies and memsets. Managed memory is device memory, and only the
//! default memory pool exists.

use std::ffi::c_void;

use super::args::Out;
use super::call::driver;
use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::memory::MemoryKind;
use crate::model::Model;
use crate::object::queue::Moment;
use crate::object::work::Work;

/// `CU_MEMHOSTALLOC_*`: portable, device-mapped, write-combined.
const HOST_FLAGS: u32 = 7;

impl Model {
    fn allocate_here(&mut self, bytes: usize, kind: MemoryKind) -> DriverResult<u64> {
        let context = self.current()?;
        self.allocate(bytes as u64, kind, context)
    }

    /// Allocates in stream order. The memory is available immediately; only freeing follows the
    /// order.
    fn allocate_on(&mut self, bytes: usize, stream: Handle) -> DriverResult<u64> {
        let stream = self.usable_stream(stream)?;
        self.capture_of(stream)?;
        let context = self.stream(stream).context;
        self.allocate(bytes as u64, MemoryKind::Device, context)
    }

    /// Frees memory, after waiting for all work in the context that might use it.
    fn free_now(&mut self, address: u64) -> DriverResult {
        if address == 0 {
            return Ok(());
        }
        let context = self.current()?;
        self.context_synchronize(context)?;
        self.release(address, MemoryKind::Device)
    }

    fn free_on(&mut self, address: u64, stream: Handle) -> DriverResult {
        if self.memory.find(address).is_none_or(|(start, _, _)| start != address) {
            return Err(Code::INVALID_VALUE);
        }
        let stream = self.usable_stream(stream)?;
        match self.capture_of(stream)? {
            // The next launch of the graph may use the memory, so it stays allocated.
            Some(capture) => self.capture_work(capture, stream, Work::Nothing),
            None => self.enqueue(stream, Work::Free { address }, None).map(drop),
        }
    }

    /// Enqueues or captures work. Returns its end, or `None` if captured.
    fn submit(&mut self, stream: Handle, work: Work) -> DriverResult<Option<Moment>> {
        self.current()?;
        let stream = self.usable_stream(stream)?;
        match self.capture_of(stream)? {
            Some(capture) => self.capture_work(capture, stream, work).map(|()| None),
            None => self.enqueue(stream, work, None).map(Some),
        }
    }

    fn check_range(&self, address: u64, bytes: usize) -> DriverResult {
        self.memory.check(address, bytes as u64).map_err(|_| Code::INVALID_VALUE)
    }

    fn upload(
        &mut self,
        to: u64,
        from: *const c_void,
        bytes: usize,
        stream: Handle,
    ) -> DriverResult<Option<Moment>> {
        self.check_range(to, bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        // SAFETY: the caller passes `bytes` readable bytes.
        let data = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) };
        self.submit(stream, Work::Upload { to, data: data.into() })
    }

    fn download(
        &mut self,
        to: *const c_void,
        from: u64,
        bytes: usize,
        stream: Handle,
    ) -> DriverResult<Option<Moment>> {
        self.check_range(from, bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        self.submit(stream, Work::Download { to: to as u64, from, bytes: bytes as u64 })
    }

    /// Downloads data. If the destination is not page-locked, the call blocks until the copy is
    /// done.
    fn download_async(
        &mut self,
        to: *const c_void,
        from: u64,
        bytes: usize,
        stream: Handle,
    ) -> DriverResult {
        let pinned = self.memory.check(to as u64, bytes as u64).is_ok();
        match self.download(to, from, bytes, stream)? {
            Some(done) if !pinned => self.wait_for(&done),
            _ => Ok(()),
        }
    }

    fn copy(
        &mut self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: Handle,
    ) -> DriverResult<Option<Moment>> {
        self.check_range(to, bytes)?;
        self.check_range(from, bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        self.submit(stream, Work::Copy { to, from, bytes: bytes as u64 })
    }

    /// Copies between two contexts' memories, which may be on different devices.
    fn copy_between(
        &mut self,
        (to, to_context): (u64, Handle),
        (from, from_context): (u64, Handle),
        bytes: usize,
        stream: Handle,
    ) -> DriverResult {
        for (address, context) in [(to, to_context), (from, from_context)] {
            let context = self.contexts.resolve(context)?;
            if self.memory.context_of(address) != Some(context) {
                return Err(Code::INVALID_VALUE);
            }
        }
        if to_context == from_context {
            return self.copy(to, from, bytes, stream).map(drop);
        }
        self.check_range(to, bytes)?;
        self.check_range(from, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.submit(stream, Work::PeerCopy { to, from, bytes: bytes as u64 }).map(drop)
    }

    /// Copies between any two addresses. The kind of memory is determined from the address.
    fn copy_any(
        &mut self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: Handle,
    ) -> DriverResult<Option<Moment>> {
        let is_device = |found| matches!(found, Some((_, _, MemoryKind::Device)));
        match (is_device(self.memory.find(to)), is_device(self.memory.find(from))) {
            (true, true) => self.copy(to, from, bytes, stream),
            (true, false) => self.upload(to, from as *const c_void, bytes, stream),
            (false, true) => self.download(to as *const c_void, from, bytes, stream),
            (false, false) => Err(Code::INVALID_VALUE),
        }
    }

    fn fill(&mut self, to: u64, pattern: &[u8], count: usize, stream: Handle) -> DriverResult {
        let bytes = count.checked_mul(pattern.len()).ok_or(Code::INVALID_VALUE)?;
        if !to.is_multiple_of(pattern.len() as u64) {
            return Err(Code::INVALID_VALUE);
        }
        self.check_range(to, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let width = pattern.len();
        let mut padded = [0; 4];
        padded[..width].copy_from_slice(pattern);
        let work = Work::Fill { to, pattern: padded, width, count: count as u64 };
        self.submit(stream, work).map(drop)
    }

    /// Waits for a synchronous call's command, if one was enqueued.
    fn wait_if(&mut self, done: Option<Moment>) -> DriverResult {
        done.map_or(Ok(()), |done| self.wait_for(&done))
    }
}

driver! {
    fn cuMemAlloc_v2(dptr: Out<u64>, bytesize: usize) [2_000, NotInCapture] |m| {
        dptr.put(m.allocate_here(bytesize, MemoryKind::Device)?)
    };
    fn cuMemAllocManaged(dptr: Out<u64>, bytesize: usize, flags: u32) [10_000, NotInCapture] |m| {
        dptr.put(m.allocate_here(bytesize, MemoryKind::Device)?)
    };
    fn cuMemAllocAsync(dptr: Out<u64>, bytesize: usize, hStream: Handle) [500, AfterInit] |m| {
        dptr.put(m.allocate_on(bytesize, hStream)?)
    };
    fn cuMemAllocFromPoolAsync(
        dptr: Out<u64>, bytesize: usize, pool: u64, hStream: Handle,
    ) [500, AfterInit] |m| dptr.put(m.allocate_on(bytesize, hStream)?);
    fn cuMemPoolTrimTo(pool: u64, minBytesToKeep: usize) [500, AfterInit] |_| Ok(());
    fn cuMemFree_v2(dptr: u64) [2_000, NotInCapture] |m| m.free_now(dptr);
    fn cuMemFreeAsync(dptr: u64, hStream: Handle) [500, AfterInit] |m| m.free_on(dptr, hStream);
    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) [1_000, AfterInit] |m| {
        m.current()?;
        let all = m.constants.memory_bytes;
        free.put(all.saturating_sub(m.memory.device_bytes()) as usize)?;
        total.put(all as usize)
    };
    fn cuMemGetAddressRange_v2(pbase: Out<u64>, psize: Out<usize>, dptr: u64) [50, AfterInit] |m| {
        let (start, bytes, _) = m.memory.find(dptr).ok_or(Code::NOT_FOUND)?;
        pbase.put_if_wanted(start);
        psize.put_if_wanted(bytes as usize);
        Ok(())
    };
    fn cuMemHostAlloc(pp: Out<u64>, bytesize: usize, Flags: u32) [10_000, NotInCapture] |m| {
        if Flags & !HOST_FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        pp.put(m.allocate_here(bytesize, MemoryKind::Host)?)
    };
    fn cuMemAllocHost_v2(pp: Out<u64>, bytesize: usize) [10_000, NotInCapture] |m| {
        pp.put(m.allocate_here(bytesize, MemoryKind::Host)?)
    };
    fn cuMemFreeHost(p: u64) [10_000, NotInCapture] |m| {
        let context = m.current()?;
        m.context_synchronize(context)?;
        m.release(p, MemoryKind::Host)
    };
    fn cuMemHostGetDevicePointer_v2(pdptr: Out<u64>, p: u64, Flags: u32) [50, AfterInit] |m| {
        match m.memory.find(p) {
            Some((_, _, MemoryKind::Host | MemoryKind::Registered)) if Flags == 0 => pdptr.put(p),
            _ => Err(Code::INVALID_VALUE),
        }
    };
    fn cuMemHostGetFlags(pFlags: Out<u32>, p: u64) [50, AfterInit] |m| match m.memory.find(p) {
        Some((_, _, MemoryKind::Host)) => pFlags.put(2),
        _ => Err(Code::INVALID_VALUE),
    };
    fn cuMemHostRegister_v2(p: u64, bytesize: usize, Flags: u32) [10_000, NotInCapture] |m| {
        let context = m.current()?;
        m.memory.register(p, bytesize as u64, context)
    };
    fn cuMemHostUnregister(p: u64) [10_000, NotInCapture] |m| {
        m.memory.free(p, MemoryKind::Registered).map(drop)
    };
    fn cuPointerGetAttribute(data: Out<u32>, attribute: u32, ptr: u64) [50, AfterInit] |m| {
        // Only `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` is supported.
        match (attribute, m.memory.find(ptr)) {
            (2, Some((_, _, MemoryKind::Device))) => data.put(2),
            (2, Some(_)) => data.put(1),
            (2, None) => Err(Code::INVALID_VALUE),
            _ => Err(Code::NOT_SUPPORTED),
        }
    };

    fn cuMemcpy(dst: u64, src: u64, ByteCount: usize) [3_000, NotInCapture] |m| {
        let done = m.copy_any(dst, src, ByteCount, 0)?;
        m.wait_if(done)
    };
    fn cuMemcpyAsync(dst: u64, src: u64, ByteCount: usize, hStream: Handle) [2_620, AfterInit] |m| {
        m.copy_any(dst, src, ByteCount, hStream).map(drop)
    };
    fn cuMemcpyHtoD_v2(
        dstDevice: u64, srcHost: *const c_void, ByteCount: usize,
    ) [3_000, NotInCapture] |m| {
        let done = m.upload(dstDevice, srcHost, ByteCount, 0)?;
        m.wait_if(done)
    };
    fn cuMemcpyDtoH_v2(
        dstHost: *const c_void, srcDevice: u64, ByteCount: usize,
    ) [3_000, NotInCapture] |m| {
        let done = m.download(dstHost, srcDevice, ByteCount, 0)?;
        m.wait_if(done)
    };
    // A copy within one device does not block the host.
    fn cuMemcpyDtoD_v2(dstDevice: u64, srcDevice: u64, ByteCount: usize) [3_000, NotInCapture] |m| {
        m.copy(dstDevice, srcDevice, ByteCount, 0).map(drop)
    };
    fn cuMemcpyHtoDAsync_v2(
        dstDevice: u64, srcHost: *const c_void, ByteCount: usize, hStream: Handle,
    ) [2_620, AfterInit] |m| m.upload(dstDevice, srcHost, ByteCount, hStream).map(drop);
    fn cuMemcpyDtoHAsync_v2(
        dstHost: *const c_void, srcDevice: u64, ByteCount: usize, hStream: Handle,
    ) [2_620, AfterInit] |m| m.download_async(dstHost, srcDevice, ByteCount, hStream);
    fn cuMemcpyDtoDAsync_v2(
        dstDevice: u64, srcDevice: u64, ByteCount: usize, hStream: Handle,
    ) [2_620, AfterInit] |m| m.copy(dstDevice, srcDevice, ByteCount, hStream).map(drop);
    fn cuMemcpyPeerAsync(
        dstDevice: u64, dstContext: Handle, srcDevice: u64, srcContext: Handle, ByteCount: usize,
        hStream: Handle,
    ) [2_620, AfterInit] |m| {
        m.copy_between((dstDevice, dstContext), (srcDevice, srcContext), ByteCount, hStream)
    };

    fn cuMemsetD8_v2(dstDevice: u64, uc: u8, N: usize) [2_620, NotInCapture] |m| {
        m.fill(dstDevice, &uc.to_ne_bytes(), N, 0)
    };
    fn cuMemsetD8Async(dstDevice: u64, uc: u8, N: usize, hStream: Handle) [2_620, AfterInit] |m| {
        m.fill(dstDevice, &uc.to_ne_bytes(), N, hStream)
    };
    fn cuMemsetD16_v2(dstDevice: u64, us: u16, N: usize) [2_620, NotInCapture] |m| {
        m.fill(dstDevice, &us.to_ne_bytes(), N, 0)
    };
    fn cuMemsetD16Async(dstDevice: u64, us: u16, N: usize, hStream: Handle) [2_620, AfterInit] |m| {
        m.fill(dstDevice, &us.to_ne_bytes(), N, hStream)
    };
    fn cuMemsetD32_v2(dstDevice: u64, ui: u32, N: usize) [2_620, NotInCapture] |m| {
        m.fill(dstDevice, &ui.to_ne_bytes(), N, 0)
    };
    fn cuMemsetD32Async(dstDevice: u64, ui: u32, N: usize, hStream: Handle) [2_620, AfterInit] |m| {
        m.fill(dstDevice, &ui.to_ne_bytes(), N, hStream)
    };
}
