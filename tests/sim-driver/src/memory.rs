//! Device memory and page-locked host memory.
//!
//! Both are host memory here, and a device pointer is a host address, so results are real. Every
//! access by a simulated command is first checked against the table of allocations.

use std::collections::BTreeMap;

use crate::code::{Code, DriverResult};
use crate::object::context::ContextRef;

/// The alignment of allocations' addresses and lengths, which keeps neighbours apart.
const ALIGNMENT: u64 = 512;

/// The kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    Device,
    /// Page-locked and mapped host memory, allocated by the driver.
    Host,
    /// Host memory owned by the program, page-locked by the driver.
    Registered,
}

struct Block {
    bytes: u64,
    kind: MemoryKind,
    context: ContextRef,
}

/// All allocations by address.
#[derive(Default)]
pub(crate) struct Memory {
    blocks: BTreeMap<u64, Block>,
    device_bytes: u64,
}

impl Memory {
    /// Returns the number of bytes of device memory in use.
    pub fn device_bytes(&self) -> u64 {
        self.device_bytes
    }

    /// Allocates zeroed memory.
    pub fn allocate(
        &mut self,
        bytes: u64,
        kind: MemoryKind,
        context: ContextRef,
    ) -> DriverResult<u64> {
        if bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let bytes = bytes.checked_next_multiple_of(ALIGNMENT).ok_or(Code::OUT_OF_MEMORY)?;
        // SAFETY: an anonymous mapping at an address chosen by the kernel does not affect others.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(Code::OUT_OF_MEMORY);
        }
        if kind == MemoryKind::Device {
            self.device_bytes += bytes;
        }
        self.blocks.insert(address as u64, Block { bytes, kind, context });
        Ok(address as u64)
    }

    /// Registers the program's memory as page-locked.
    pub fn register(&mut self, address: u64, bytes: u64, context: ContextRef) -> DriverResult {
        if address == 0 || bytes == 0 {
            return Err(Code::INVALID_VALUE);
        }
        if self.block(address).is_some() {
            return Err(Code::HOST_MEMORY_ALREADY_REGISTERED);
        }
        self.blocks.insert(address, Block { bytes, kind: MemoryKind::Registered, context });
        Ok(())
    }

    /// Frees the allocation of this kind at `address`, and returns its length.
    pub fn free(&mut self, address: u64, kind: MemoryKind) -> DriverResult<u64> {
        match self.blocks.get(&address) {
            Some(block) if block.kind == kind => {}
            _ if kind == MemoryKind::Registered => return Err(Code::HOST_MEMORY_NOT_REGISTERED),
            _ => return Err(Code::INVALID_VALUE),
        }
        let block = self.blocks.remove(&address).expect("the block was just found");
        if kind != MemoryKind::Registered {
            // SAFETY: `allocate` mapped exactly this range, and it was in the table until now.
            unsafe { libc::munmap(address as *mut libc::c_void, block.bytes as usize) };
        }
        if kind == MemoryKind::Device {
            self.device_bytes -= block.bytes;
        }
        Ok(block.bytes)
    }

    /// Frees all of an ended context's allocations. Host memory that the driver allocated stays
    /// mapped without access: a program that still uses it faults immediately, as with the real
    /// driver, instead of writing to memory that is mapped there later.
    pub fn free_all_of(&mut self, context: ContextRef) {
        let device_bytes = &mut self.device_bytes;
        self.blocks.retain(|&address, block| {
            if block.context != context {
                return true;
            }
            let (start, bytes) = (address as *mut libc::c_void, block.bytes as usize);
            match block.kind {
                MemoryKind::Registered => {}
                MemoryKind::Device => {
                    *device_bytes -= block.bytes;
                    // SAFETY: `allocate` mapped exactly this range, and it leaves the table now.
                    unsafe { libc::munmap(start, bytes) };
                }
                MemoryKind::Host => {
                    // SAFETY: as above; the range stays mapped, so nothing else can move there.
                    unsafe { libc::mprotect(start, bytes, libc::PROT_NONE) };
                }
            }
            false
        });
    }

    fn block(&self, address: u64) -> Option<(u64, &Block)> {
        let (&start, block) = self.blocks.range(..=address).next_back()?;
        (address - start < block.bytes).then_some((start, block))
    }

    /// Returns the start, the length and the kind of the allocation that contains `address`.
    pub fn find(&self, address: u64) -> Option<(u64, u64, MemoryKind)> {
        self.block(address).map(|(start, block)| (start, block.bytes, block.kind))
    }

    /// Returns the context of the allocation that contains `address`.
    pub fn context_of(&self, address: u64) -> Option<ContextRef> {
        self.block(address).map(|(_, block)| block.context)
    }

    /// Fails unless devices may access all of `address .. address + bytes`.
    pub fn check(&self, address: u64, bytes: u64) -> DriverResult {
        if bytes == 0 {
            return Ok(());
        }
        let (start, block) = self.block(address).ok_or(Code::ILLEGAL_ADDRESS)?;
        let end = address.checked_add(bytes).ok_or(Code::ILLEGAL_ADDRESS)?;
        if end > start + block.bytes { Err(Code::ILLEGAL_ADDRESS) } else { Ok(()) }
    }

    /// Loads the word at `address`. Returns `None` if it is not aligned or not in a live
    /// allocation.
    pub fn load(&self, address: u64) -> Option<u64> {
        self.check(address, 8).ok()?;
        if !address.is_multiple_of(8) {
            return None;
        }
        // SAFETY: the word was checked to lie in a live allocation and to be aligned. The host
        // stores to it atomically, so an atomic load does not race.
        let word = unsafe { &*(address as *const std::sync::atomic::AtomicU64) };
        Some(word.load(std::sync::atomic::Ordering::Acquire))
    }

    /// Stores `word` at `address`, if it is aligned and in a live allocation.
    pub fn store(&self, address: u64, word: u64) {
        if self.check(address, 8).is_ok() && address.is_multiple_of(8) {
            // SAFETY: as in `load`.
            let target = unsafe { &*(address as *const std::sync::atomic::AtomicU64) };
            target.store(word, std::sync::atomic::Ordering::Release);
        }
    }

    /// Copies between two ranges, which may overlap.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> DriverResult {
        self.check(to, bytes)?;
        self.check(from, bytes)?;
        // SAFETY: both ranges were checked to lie in live allocations.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes as usize) };
        Ok(())
    }

    /// Writes `data` to a range that devices may access.
    pub fn write(&self, to: u64, data: &[u8]) -> DriverResult {
        self.check(to, data.len() as u64)?;
        // SAFETY: the range was checked to lie in a live allocation, and `data` is borrowed.
        unsafe { std::ptr::copy(data.as_ptr(), to as *mut u8, data.len()) };
        Ok(())
    }

    /// Fills a range with a pattern of 1, 2 or 4 bytes.
    pub fn fill(&self, to: u64, pattern: &[u8], count: u64) -> DriverResult {
        let bytes = count.checked_mul(pattern.len() as u64).ok_or(Code::INVALID_VALUE)?;
        self.check(to, bytes)?;
        // SAFETY: the range was checked to lie in a live allocation, which is not covered by any
        // Rust reference.
        let range = unsafe { std::slice::from_raw_parts_mut(to as *mut u8, bytes as usize) };
        match pattern {
            [byte, rest @ ..] if rest.iter().all(|other| other == byte) => range.fill(*byte),
            _ => range.chunks_exact_mut(pattern.len()).for_each(|c| c.copy_from_slice(pattern)),
        }
        Ok(())
    }
}
