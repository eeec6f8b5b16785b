//! Handles for streams, events, modules, functions, captures, graphs and user objects.
//!
//! The real driver's handles are pointers, which it does not check. Here, a handle contains the
//! generation of its slot, so using it after its object has been destroyed is an error, never
//! undefined behaviour.

/// A handle as seen by the C caller: as wide as a pointer, never dereferenced.
pub(crate) type Handle = u64;

const INDEX_BITS: u32 = 24;
const TAG_SHIFT: u32 = 56;

/// Objects of one kind. A handle is `tag << 56 | generation << 24 | index`.
pub(crate) struct Table<T> {
    tag: u64,
    /// A new object gets the handle of the most recently removed one, like a reused pointer in the
    /// real driver. From then on, the stale handle refers to the new object and is not an error.
    reuses: bool,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Table<T> {
    /// Creates an empty table whose handles contain `tag`. The tag must not be 0, so that no handle
    /// is null or equals one of the special streams.
    pub fn new(tag: u8) -> Self {
        assert!(tag != 0);
        Self { tag: u64::from(tag), reuses: false, slots: Vec::new(), free: Vec::new() }
    }

    /// Creates an empty table that reuses handles if `reuses`.
    pub fn reusing(tag: u8, reuses: bool) -> Self {
        Self { reuses, ..Self::new(tag) }
    }

    pub fn insert(&mut self, value: T) -> Handle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            u32::try_from(self.slots.len() - 1).expect("more than 2^24 objects of one kind")
        });
        assert!(index < 1 << INDEX_BITS, "more than 2^24 objects of one kind");
        let slot = &mut self.slots[index as usize];
        if !self.reuses || slot.generation == 0 {
            slot.generation = slot.generation.wrapping_add(1);
        }
        slot.value = Some(value);
        self.tag << TAG_SHIFT | u64::from(slot.generation) << INDEX_BITS | u64::from(index)
    }

    fn index(&self, handle: Handle) -> Option<usize> {
        let index = (handle & ((1 << INDEX_BITS) - 1)) as usize;
        let generation = (handle >> INDEX_BITS) as u32;
        let slot = self.slots.get(index)?;
        (handle >> TAG_SHIFT == self.tag && slot.generation == generation).then_some(index)
    }

    pub fn get(&self, handle: Handle) -> Option<&T> {
        self.index(handle).and_then(|index| self.slots[index].value.as_ref())
    }

    pub fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        self.index(handle).and_then(|index| self.slots[index].value.as_mut())
    }

    pub fn remove(&mut self, handle: Handle) -> Option<T> {
        let index = self.index(handle)?;
        let value = self.slots[index].value.take()?;
        self.free.push(index as u32);
        Some(value)
    }

    /// If handles are reused, moves an object to a new handle, so that the next object can get the
    /// old one. Returns the object's handle after the move.
    pub fn retire(&mut self, handle: Handle) -> Handle {
        let Some(index) = self.index(handle).filter(|_| self.reuses) else { return handle };
        let Some(value) = self.slots[index].value.take() else { return handle };
        let retired = self.insert(value);
        self.free.push(index as u32);
        retired
    }

    /// Returns `true` if `handle` has the form of a handle from this table whose object has been
    /// removed.
    pub fn was_removed(&self, handle: Handle) -> bool {
        let index = (handle & ((1 << INDEX_BITS) - 1)) as usize;
        handle >> TAG_SHIFT == self.tag && index < self.slots.len() && self.get(handle).is_none()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Handle, &mut T)> {
        let tag = self.tag;
        self.slots.iter_mut().enumerate().filter_map(move |(index, slot)| {
            let handle = tag << TAG_SHIFT | u64::from(slot.generation) << INDEX_BITS | index as u64;
            slot.value.as_mut().map(|value| (handle, value))
        })
    }
}
