//! Hands long opened calls over in parts, so that memory stays bounded, and the functions inside are recorded
//! before the outermost one has ended.
//!
//! A part is a call of its own. It has all functions that have ended since the last part, with their launches. The
//! functions around them, which go on, are in it as well, so that paths are right and the functions' own work is in
//! the call tree. Such a function is split: it has no figures of its own, because they would need all parts at once,
//! and its call is lost, usually as [`Lost::Long`]. A function is split only if it has more frames or launches than
//! [`LONG`], including those inside it, unless the process is ending or too much of the call is suspended.

use crate::base::clock;
use crate::record::opened::open_call::{Frame, MAX_FRAMES, MAX_LAUNCHES, OpenCall};
use crate::types::sample::Lost;

/// The numbers of frames and of launches beyond which a function may be split.
const LONG: (usize, usize) = (4_096, 65_536);
/// The numbers beyond which a call is split even while a function inside the outermost one runs. That function
/// may have begun when the call was almost long.
const VERY_LONG: (usize, usize) = (2 * LONG.0, 2 * LONG.1);
// A function inside may make some launches before it calls or ends another one.
const _: () = assert!(VERY_LONG.0 < MAX_FRAMES && VERY_LONG.1 < MAX_LAUNCHES);
/// The smallest numbers of new frames or launches for which a part is worth its cost.
const WORTH: (usize, usize) = (LONG.0 / 4, LONG.1 / 4);
/// The age beyond which a call is not expected to end before the process does.
const OLD_NS: u64 = 100_000_000;

impl OpenCall {
    /// Returns the reason to hand over a part of the call now: the call is long, or the process is ending and
    /// waits for the call. The functions that go on are lost for this reason. Returns `None` if no part is due. A call
    /// that has just begun gets no part when the process ends, because it may still end in time.
    pub fn due_part(&self, is_ending: bool) -> Option<Lost> {
        if self.is_long() {
            return Some(Lost::Long);
        }
        let began = self.frames.first().map_or(u64::MAX, |outermost| outermost.entered_ns);
        let is_old = || clock::now_ns().saturating_sub(began) > OLD_NS;
        (is_ending && self.is_awaited && is_old()).then_some(Lost::Unfinished)
    }

    /// Returns `true` if the call is long enough for a part to be handed over now. While a function runs that
    /// is neither the outermost one nor split, this waits until little room is left.
    pub fn is_long(&self) -> bool {
        let (frames, launches) = (self.frames.len(), self.launches);
        let exceeds = |bounds: (usize, usize)| frames > bounds.0 || launches > bounds.1;
        if !exceeds(LONG) {
            return false;
        }
        let new = (frames.saturating_sub(self.kept.0), launches.saturating_sub(self.kept.1));
        let around = self.at.and_then(|at| self.frames.get(at as usize));
        let is_split = |of: &Frame| of.parent.is_none() || of.is_split();
        let is_worth = new.0 >= WORTH.0 || new.1 >= WORTH.1;
        is_worth && (around.is_none_or(is_split) || exceeds(VERY_LONG))
    }

    /// Moves what has ended to `part`, an empty call. Functions that are split are lost for `reason`.
    pub fn split_off(&mut self, part: &mut OpenCall, reason: Lost) {
        let is_alive = |frame: &Frame| !frame.is_over;
        let whole = self.functions_to_keep(is_alive);
        let kept = || self.frames.iter().zip(&whole).filter(|(_, is_kept)| **is_kept);
        let launches: usize = kept().map(|(frame, _)| frame.launches).sum();
        if kept().count() <= LONG.0 && launches <= LONG.1 {
            return self.split_around(part, reason, is_alive, &whole);
        }
        // Too much would stay, because it is suspended. So nothing stays whole.
        let whole = vec![false; self.frames.len()];
        self.split_around(part, reason, |frame| frame.left_ns == 0, &whole);
    }

    /// Returns, for each frame, whether it stays in the call with everything inside it, because it may go on
    /// and is not split.
    fn functions_to_keep(&self, is_alive: impl Fn(&Frame) -> bool) -> Vec<bool> {
        let mut kept = self.with_callers(is_alive);
        let split = self.functions_to_split();
        for at in 0..self.frames.len() {
            let is_inside = self.frames[at].parent.is_some_and(|parent| is_set(&kept, parent));
            kept[at] = !split[at] && (kept[at] || is_inside);
        }
        kept
    }

    /// Returns, for each frame, whether it is split. Of the running function and those around it, these are the
    /// outermost one and those that are long or already split.
    fn functions_to_split(&self) -> Vec<bool> {
        // The number of launches in each frame and all later ones. For a frame that runs, the later ones are
        // inside it.
        let mut launches = vec![0; self.frames.len()];
        let mut later = 0;
        for (at, frame) in self.frames.iter().enumerate().rev() {
            later += frame.launches;
            launches[at] = later;
        }
        let mut split = vec![false; self.frames.len()];
        let mut next = self.at.map(|at| at as usize);
        while let Some(at) = next
            && let Some(frame) = self.frames.get(at)
        {
            let is_long = self.frames.len() - at > LONG.0 || launches[at] > LONG.1;
            split[at] = is_long || frame.parent.is_none() || frame.is_split();
            next = frame.parent.map(|parent| parent as usize);
        }
        split
    }

    /// Returns, for each frame, whether it or one inside it is alive.
    fn with_callers(&self, is_alive: impl Fn(&Frame) -> bool) -> Vec<bool> {
        let mut alive: Vec<bool> = self.frames.iter().map(is_alive).collect();
        for (at, frame) in self.frames.iter().enumerate().rev() {
            if let Some(parent) = frame.parent.filter(|_| alive[at]) {
                set(&mut alive, parent);
            }
        }
        alive
    }

    /// Moves all frames to `part`. Frames that are alive or `whole` stay in the call as well. The launches of `whole`
    /// frames stay only there.
    fn split_around(
        &mut self,
        part: &mut OpenCall,
        reason: Lost,
        is_alive: impl Fn(&Frame) -> bool,
        whole: &[bool],
    ) {
        let alive = self.with_callers(is_alive);
        std::mem::swap(&mut self.frames, &mut part.frames);
        part.launches = std::mem::take(&mut self.launches);
        (part.number, part.entered) = (self.number, self.entered);
        (part.around, part.phase) = (self.around, self.phase);
        part.span_weight = self.span_weight;
        part.is_incomplete = self.is_incomplete;
        let mut positions = vec![None; part.frames.len()];
        for (at, frame) in part.frames.iter_mut().enumerate() {
            if !(alive[at] || whole[at]) {
                continue;
            }
            if self.is_incomplete && whole[at] {
                frame.lost.get_or_insert(Lost::Records);
            } else if !whole[at] {
                frame.lost.get_or_insert(reason);
            }
            let parent = frame.parent.and_then(|at| *positions.get(at as usize)?);
            positions[at] = Some(self.frames.len() as u32);
            let launches = if whole[at] { frame.launches } else { 0 };
            self.launches += launches;
            self.frames.push(Frame { parent, launches, ..frame.clone() });
            (frame.goes_on, frame.keeps_launches) = (true, whole[at]);
        }
        let position = |at: u32| *positions.get(at as usize)?;
        self.at = self.at.and_then(position);
        part.launches -= self.launches;
        self.kept = (self.frames.len(), self.launches);
        self.is_incomplete &= self.switched_on.is_none();
    }
}

impl Frame {
    /// Returns `true` if an earlier part may have work of the function.
    pub(super) fn is_split(&self) -> bool {
        self.lost == Some(Lost::Long)
    }
}

fn is_set(of: &[bool], at: u32) -> bool {
    of.get(at as usize).copied().unwrap_or_default()
}

fn set(of: &mut [bool], at: u32) {
    if let Some(of) = of.get_mut(at as usize) {
        *of = true;
    }
}
