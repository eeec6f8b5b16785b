//! Finds all copies of the runtime in this process: a plugin that is linked with gpu-time has its own.
//!
//! Each runtime has an ELF note in its object, which leads the others to its [`SharedState`]. The dynamic loader
//! lists the objects, so that no variable, file or exported symbol is needed.

#![allow(unsafe_code)] // the dynamic loader, and the entries of other runtimes

use std::arch::global_asm;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

/// The state that a runtime shows to the others. Every version of gpu-time that uses [`TYPE`] has the same
/// layout, and the same meaning of the fields.
#[repr(C)]
struct SharedState {
    /// The position of this runtime, from 1 for the one that was used first; 0 before its first use.
    number: AtomicU32,
    /// An `extern "C" fn(c_int)` that answers a signal; null while the runtime answers none.
    answer: AtomicPtr<c_void>,
}

static SHARED_STATE: SharedState =
    SharedState { number: AtomicU32::new(0), answer: AtomicPtr::new(ptr::null_mut()) };

/// The name in the note.
const NAME: &[u8; 12] = b"gpu-time-rt\0";
/// The type of the note.
const TYPE: u32 = 1;

// The note's description is the distance from itself to `SHARED_STATE`, which needs no relocation at load time.
global_asm!(
    ".pushsection .note.gpu_time, \"a\", %note",
    ".balign 4",
    ".long 12, 4, {kind}",
    ".asciz \"gpu-time-rt\"",
    ".long {entry} - .",
    ".popsection",
    kind = const TYPE,
    entry = sym SHARED_STATE,
);

/// Gives this runtime its number, unless it has one.
pub(crate) fn enlist() {
    locking_loader(&mut || {
        if number() == 0 {
            let mut last = 0;
            visit(&mut |entry| last = last.max(entry.number.load(Relaxed)));
            SHARED_STATE.number.store(last + 1, Relaxed);
        }
    });
}

/// Returns the number of this runtime; 0 before it is enlisted.
pub(crate) fn number() -> u32 {
    SHARED_STATE.number.load(Relaxed)
}

/// Returns how many runtimes are enlisted in this process.
pub(crate) fn count() -> usize {
    let mut count = 0;
    visit(&mut |entry| count += usize::from(entry.number.load(Relaxed) > 0));
    count
}

/// Returns a warning for the report if there are several runtimes.
pub(crate) fn warning() -> Option<String> {
    let (number, count) = (number(), count());
    let suffix = match number {
        0 | 1 => String::new(),
        later => format!(", and its files have the suffix `-{later}`"),
    };
    (count > 1).then(|| {
        format!(
            "this process has {count} copies of gpu-time, in the program or in plugins: each reports its own \
             functions. This is number {number}{suffix}"
        )
    })
}

/// Registers `answer` for the runtime that handles a signal, which calls it on a thread of its own.
#[cfg(any(feature = "nvml", feature = "signals"))]
pub(crate) fn answer_signals_with(answer: extern "C" fn(c_int)) {
    SHARED_STATE.answer.store(answer as *mut c_void, Relaxed);
}

/// Lets all other runtimes answer a signal, one after the other.
#[cfg(any(feature = "nvml", feature = "signals"))]
pub(crate) fn answer(signal: c_int) {
    for answer in other_answers() {
        answer(signal);
    }
}

/// Returns the functions with which the other runtimes answer signals.
#[cfg(any(feature = "nvml", feature = "signals"))]
pub(crate) fn other_answers() -> Vec<extern "C" fn(c_int)> {
    let mut found = Vec::new();
    visit(&mut |entry| {
        let answer = entry.answer.load(Relaxed);
        if !ptr::eq(entry, &raw const SHARED_STATE) && !answer.is_null() {
            // SAFETY: the only type of function that is stored. Its code is pinned.
            found.push(unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(answer) });
        }
    });
    found
}

/// Calls `work` once under the dynamic loader's lock, so that no other thread loads or unloads a library or
/// runs such work.
fn locking_loader(work: &mut dyn FnMut()) {
    iterate(&mut |_| {
        work();
        false
    });
}

/// Visits the [`SharedState`] of every runtime in the process. The loader is locked meanwhile.
fn visit(visit: &mut dyn FnMut(&SharedState)) {
    iterate(&mut |object| {
        // SAFETY: the loader describes an object that is loaded, and stays so until this function returns.
        unsafe { visit_object(object, visit) };
        true
    });
}

/// Calls `visit` with every object in the process, until it returns `false`.
fn iterate(mut visit: &mut dyn FnMut(&libc::dl_phdr_info) -> bool) {
    unsafe extern "C" fn step(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: `visit` is the pointer passed below, which is valid during that call.
        let visit = unsafe { &mut *visit.cast::<&mut dyn FnMut(&libc::dl_phdr_info) -> bool>() };
        // SAFETY: the loader passes a valid description.
        c_int::from(!visit(unsafe { &*info }))
    }
    // SAFETY: `step` gets the type of pointer that it expects. No visitor unwinds.
    unsafe { libc::dl_iterate_phdr(Some(step), (&raw mut visit).cast()) };
}

/// Visits the [`SharedState`] of every runtime in an object.
///
/// # Safety
///
/// The object must be loaded.
unsafe fn visit_object(object: &libc::dl_phdr_info, visit: &mut dyn FnMut(&SharedState)) {
    // SAFETY: the loader's own list of segments.
    let segments =
        unsafe { slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) };
    for segment in segments.iter().filter(|segment| segment.p_type == libc::PT_NOTE) {
        let start = (object.dlpi_addr + segment.p_vaddr) as usize;
        // SAFETY: notes are part of the object's read-only memory.
        let notes = unsafe {
            slice::from_raw_parts(
                ptr::with_exposed_provenance::<u8>(start),
                segment.p_memsz as usize,
            )
        };
        for distance in distances(notes, segment.p_align as usize) {
            let place = notes.as_ptr().addr() + distance.place;
            let entry = place.wrapping_add_signed(distance.to_entry as isize);
            // SAFETY: the note of a runtime says that there is an entry, which lives as long as the object.
            visit(unsafe { &*ptr::with_exposed_provenance::<SharedState>(entry) });
        }
    }
}

/// The description in the note of a runtime.
#[derive(Debug, PartialEq, Eq)]
struct Distance {
    /// The offset of the description in the segment.
    place: usize,
    to_entry: i32,
}

/// Finds the notes of runtimes among all notes of a segment.
fn distances(notes: &[u8], align: usize) -> Vec<Distance> {
    let word = |at: usize| {
        let bytes = notes.get(at..at.checked_add(4)?)?;
        Some(u32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let align = if align == 8 { 8 } else { 4 };
    let (mut found, mut at) = (Vec::new(), 0_usize);
    while let (Some(name), Some(length), Some(kind)) = (word(at), word(at + 4), word(at + 8)) {
        let name_at = at + 12;
        let place = (name_at + name as usize).next_multiple_of(align);
        let is_ours = kind == TYPE && length == 4 && notes.get(name_at..place) == Some(NAME);
        if let (true, Some(to_entry)) = (is_ours, word(place)) {
            found.push(Distance { place, to_entry: to_entry as i32 });
        }
        at = (place + length as usize).next_multiple_of(align);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_entry_is_found_once() {
        let mut found = 0;
        visit(&mut |entry| found += usize::from(ptr::eq(entry, &raw const SHARED_STATE)));
        assert_eq!(found, 1);
        enlist();
        enlist();
        assert_eq!((number(), count(), warning()), (1, 1, None));
    }

    #[test]
    fn notes_of_others_are_passed_over() {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let other: Vec<u8> = [words(&[4, 5, 3]), b"GNU\0".to_vec(), vec![7; 8]].concat();
        let ours: Vec<u8> = [words(&[12, 4, TYPE]), NAME.to_vec(), words(&[8])].concat();
        let later: Vec<u8> = [words(&[12, 4, TYPE + 1]), NAME.to_vec(), words(&[8])].concat();
        let notes = [&other[..], &ours, &later, &other].concat();
        assert_eq!(distances(&notes, 4), [Distance { place: other.len() + 24, to_entry: 8 }]);
        assert_eq!(distances(&ours[..ours.len() - 1], 4), []);
        assert_eq!(distances(&words(&[u32::MAX; 3]), 4), []);
    }
}
