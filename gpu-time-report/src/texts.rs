//! The texts of a report: names, keys, labels and messages. They are made printable where they enter a snapshot, because
//! they come from the program or from a file of somebody else.

use std::collections::BTreeMap;
use std::mem;

use crate::units::{is_hidden, printable};
use crate::{
    Coverage, Device, Elsewhere, Eviction, FlushProof, Kernel, KernelTimes, Launch, Node,
    PhaseKernel, Process, Series, Site,
};

/// The maximum length of a text in bytes. Names of kernels have up to 8 KiB.
pub const MAX_TEXT: usize = 64 << 10;

/// Values that contain texts.
pub trait Texts {
    /// Makes the texts printable, and at most [`MAX_TEXT`] bytes long.
    fn clean(&mut self);
}

/// Lists the texts of each value.
macro_rules! texts {
    ($($kind:ident { $($field:ident)* })*) => {
        $(impl Texts for $kind {
            fn clean(&mut self) {
                $(self.$field.clean();)*
            }
        })*
    };
}

pub(crate) use texts;

texts! {
    Process { name started version warnings program_version label host off kernels merged }
    Device {
        id name warnings throttle flush_proof coverage driver driver_release uuid event_bias_source
    }
    FlushProof { clean dirty }
    Eviction { method }
    Coverage { kernels }
    PhaseKernel { name }
    Site { name file options gpu_keys warnings series }
    Series { device key launch kernel_times }
    Launch { name }
    KernelTimes { kernels elsewhere }
    Kernel { name }
    Elsewhere { name }
    Node { name self_ns_by_device }
}

impl Texts for String {
    fn clean(&mut self) {
        const MORE: &str = "…";
        if is_clean(self) {
            return;
        }
        *self = printable(self);
        if self.len() > MAX_TEXT {
            let mut end = MAX_TEXT - MORE.len();
            while !self.is_char_boundary(end) {
                end -= 1;
            }
            self.truncate(end);
            self.push_str(MORE);
        }
    }
}

impl<T: Texts> Texts for Option<T> {
    fn clean(&mut self) {
        self.iter_mut().for_each(T::clean);
    }
}

impl<T: Texts> Texts for Vec<T> {
    fn clean(&mut self) {
        self.iter_mut().for_each(T::clean);
    }
}

/// The keys are texts.
impl<T> Texts for BTreeMap<String, T> {
    fn clean(&mut self) {
        if self.keys().any(|key| !is_clean(key)) {
            let cleaned = mem::take(self).into_iter().map(|(mut key, value)| {
                key.clean();
                (key, value)
            });
            *self = cleaned.collect();
        }
    }
}

fn is_clean(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.contains(is_hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        for text in ["é".repeat(MAX_TEXT), "a".repeat(MAX_TEXT + 1), "\u{9b}".repeat(MAX_TEXT)] {
            let mut cut = text;
            cut.clean();
            assert!((MAX_TEXT - 3..=MAX_TEXT).contains(&cut.len()) && cut.ends_with('…'));
        }
        let mut whole = "a".repeat(MAX_TEXT);
        whole.clean();
        assert!(!whole.ends_with('…'));
    }
}
