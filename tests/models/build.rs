//! Copies source files from the runtime, replacing the `std` atomics with loom's. Makes another
//! copy for each bug that a model must find.

use std::path::Path;
use std::{env, fs};

/// A name, a file, and the texts to replace, each of which must occur exactly once.
type Copy = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const SLOTS: (&str, &str) = ("const SLOTS: usize = 64;", "const SLOTS: usize = 3;");
/// Removes page alignment, because the stacks of loom's threads have no room for pages.
const ALIGN: (&str, &str) = ("#[repr(align(4096))]", "");

const CAPTURES: (&str, &str) =
    ("const MAX_CAPTURES: usize = 16;", "const MAX_CAPTURES: usize = 2;");

const COPIES: [Copy; 12] = [
    ("switches", "base/switches.rs", &[]),
    (
        "switches_torn",
        "base/switches.rs",
        &[("self.0.fetch_or(ON, AcqRel);", "self.0.store(self.0.load(Relaxed) | ON, Relaxed);")],
    ),
    ("counters", "site/counters.rs", &[]),
    ("captures", "cupti/captures.rs", &[CAPTURES]),
    (
        "captures_early_number",
        "cupti/captures.rs",
        &[
            CAPTURES,
            (
                "for slot in &self.slots {\n            if slot.stream.compare_exchange(FREE,",
                "for slot in &self.slots {\n            slot.number.store(number, SeqCst);\n            if slot.stream.compare_exchange(FREE,",
            ),
        ],
    ),
    ("hold", "cuda/hold.rs", &[ALIGN, SLOTS]),
    (
        "hold_torn_claim",
        "cuda/hold.rs",
        &[
            ALIGN,
            SLOTS,
            (
                "self.claimed.fetch_update(Relaxed, Relaxed, claim).ok()?",
                "{ let now = self.claimed.load(Relaxed); self.claimed.store(claim(now)?, Relaxed); now }",
            ),
        ],
    ),
    (
        "hold_torn_release",
        "cuda/hold.rs",
        &[
            ALIGN,
            SLOTS,
            (
                "words[RELEASED].fetch_max(ticket, Release) >= ticket",
                "words[RELEASED].swap(ticket, Release) >= ticket",
            ),
        ],
    ),
    ("hold_blind_release", "cuda/hold.rs", &[ALIGN, SLOTS, ("ticket = LET_GO;", "")]),
    ("open_frames", "record/open_frames.rs", &[]),
    (
        "open_frames_unchecked_call",
        "record/open_frames.rs",
        &[("let is_its = self.call.load(Relaxed) == call;", "let is_its = true;")],
    ),
    (
        "open_frames_unfenced_end",
        "record/open_frames.rs",
        &[("sees what was noted for it.\n        fence(SeqCst);", "")],
    ),
];

fn main() {
    let runtime = Path::new("../../gpu-time-runtime/src");
    for (name, file, replaced) in COPIES {
        let path = runtime.join(file);
        println!("cargo::rerun-if-changed={}", path.display());
        let mut text = fs::read_to_string(&path).expect("the source file is there");
        for (old, new) in replaced {
            assert_eq!(text.matches(old).count(), 1, "{file}: `{old}` must occur once");
            text = text.replace(old, new);
        }
        let text = text.replace("std::sync::atomic", "crate::atomic");
        let text = text.split("#[cfg(test)]\nmod tests").next().expect("there is text before");
        // `include!` does not accept inner attributes or docs.
        let lines =
            text.lines().filter(|line| !line.starts_with("//!") && !line.starts_with("#!["));
        let text: String = lines.flat_map(|line| [line, "\n"]).collect();
        let to = Path::new(&env::var("OUT_DIR").expect("cargo sets it")).join(format!("{name}.rs"));
        fs::write(to, text).expect("the folder is writable");
    }
}
