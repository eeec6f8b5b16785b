//! Models for the runtime's lock-free code. Loom runs them in every order allowed by the memory
//! model. The code is copied from the runtime by `build.rs`.
//!
//! Every model also runs on code that contains a bug, which the model must find.

#![cfg(test)]
#![allow(dead_code, unused_imports, unused_mut, reason = "a model uses part of a file")]

mod atomic;
mod stubs;

// The paths imported by the copied files.
use stubs::{base, cuda, cupti, gpu, stats, types};

/// Declares modules, each of which contains a copy of a source file and its model, with access to
/// private items.
macro_rules! copies {
    ($model:literal: $($name:ident),+) => {$(
        mod $name {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".rs"));
            pub mod model {
                include!($model);
            }
        }
    )+};
}

copies!("models/switches.rs": switches, switches_torn);
copies!("models/counters.rs": counters);
copies!("models/captures.rs": captures, captures_early_number);
copies!("models/hold.rs": hold, hold_torn_claim, hold_torn_release, hold_blind_release);
copies!("models/open_frames.rs": open_frames, open_frames_unchecked_call, open_frames_unfenced_end);

#[test]
fn close_wins_over_concurrent_switch() {
    loom::model(switches::model::close_wins_over_concurrent_switch);
}

#[test]
#[should_panic = "closed timing was switched on"]
fn torn_switch_is_found() {
    loom::model(switches_torn::model::close_wins_over_concurrent_switch);
}

#[test]
fn counts_are_complete_after_a_hand_over() {
    loom::model(|| counters::model::counts_are_complete_after_a_hand_over(true));
}

#[test]
#[should_panic = "calls were lost"]
fn second_writer_is_found() {
    loom::model(|| counters::model::counts_are_complete_after_a_hand_over(false));
}

#[test]
fn captures_keep_their_numbers() {
    loom::model(captures::model::captures_keep_their_numbers);
}

#[test]
#[should_panic = "a capture has the number of another one"]
fn number_without_a_claim_is_found() {
    loom::model(captures_early_number::model::captures_keep_their_numbers);
}

#[test]
fn release_frees_no_other_hold() {
    loom::model(hold::model::release_frees_no_other_hold);
}

#[test]
#[should_panic = "two holds have one slot"]
fn torn_claim_is_found() {
    loom::model(hold_torn_claim::model::release_frees_no_other_hold);
}

#[test]
fn exit_releases_later_holds() {
    loom::model(hold::model::exit_releases_later_holds);
}

#[test]
#[should_panic = "a hold was left"]
fn torn_release_is_found() {
    loom::model(hold_torn_release::model::exit_releases_later_holds);
}

#[test]
fn hold_that_is_let_go_counts_as_expired() {
    loom::model(hold::model::hold_that_is_let_go_counts_as_expired);
}

#[test]
#[should_panic = "the bracket counts as fed"]
fn blind_release_is_found() {
    loom::model(hold_blind_release::model::hold_that_is_let_go_counts_as_expired);
}

#[test]
fn frame_is_of_the_call_that_is_read() {
    loom::model(open_frames::model::frame_is_of_the_call_that_is_read);
}

#[test]
#[should_panic = "the frame is of another call"]
fn unchecked_call_is_found() {
    loom::model(open_frames_unchecked_call::model::frame_is_of_the_call_that_is_read);
}

#[test]
fn launch_is_noted_before_its_call_ends() {
    loom::model(open_frames::model::launch_is_noted_before_its_call_ends);
}

#[test]
#[should_panic = "the launch came too late"]
fn end_without_a_fence_is_found() {
    loom::model(open_frames_unfenced_end::model::launch_is_noted_before_its_call_ends);
}
