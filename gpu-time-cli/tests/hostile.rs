//! Input that is none: one line names the file, and nothing panics.

use std::path::PathBuf;

use gpu_time_report::{Series, Snapshot, Stats};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::made::{gpu, report, series, site};
use crate::{Folder, first, tool};

#[test]
fn what_is_no_report_is_named() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(first()).unwrap();
    let half = &text[..text.len() / 2];
    let future = text.replacen("gpu-time/1", "gpu-time/2", 1);
    for (name, text, why) in [
        ("empty", "", "the JSON ends early: "),
        ("half", half, "the JSON ends early: "),
        ("text", "# notes", "not JSON: "),
        ("trace", "{\"traceEvents\": []}", "not a report of gpu-time: no `schema` says so"),
        ("list", "[1, 2]", "not a report of gpu-time: no `schema` says so"),
        (
            "future",
            &future,
            "the schema is \"gpu-time/2\", and `gpu-time/1` is what this version reads",
        ),
        ("escape\u{1b}[2J", "{}", "not a report"),
    ] {
        let file = folder.write(name, text);
        for command in ["show", "merge"] {
            let line = tool(&[command.into(), file.clone()]).refused();
            assert!(line.contains(&format!("{}`: {why}", name.escape_default())), "{line}");
        }
        let line = tool(&["compare".into(), first(), file]).refused();
        assert!(line.contains(why), "{line}");
    }
    let line = tool(&["show".into(), folder.path("missing")]).refused();
    assert!(line.contains("missing` cannot be read: "), "{line}");
    let line = tool(&["show".into(), folder.path("")]).refused();
    assert!(line.contains("cannot be read: "), "{line}");
}

#[test]
fn what_is_too_large_is_not_read() {
    let folder = Folder::new();
    let file = folder.write("huge", "");
    // A hole takes no room.
    std::fs::File::options().write(true).open(&file).unwrap().set_len((1 << 30) + 1).unwrap();
    let line = tool(&["show".into(), file]).refused();
    assert!(line.ends_with("huge` is larger than 1 GiB, so no report"), "{line}");
}

#[test]
fn nesting_without_end_is_refused() {
    let folder = Folder::new();
    for field in ["devices", "unknown"] {
        let deep = format!("{{\"schema\": \"gpu-time/1\", \"{field}\": {}", "[".repeat(1_000_000));
        let line = tool(&["show".into(), folder.write("deep", deep)]).refused();
        assert!(line.contains("deep`: "), "{line}");
    }
}

/// Two reports of functions with these counts and times.
fn too_much(folder: &Folder, count: u64, ns: f64) -> [PathBuf; 2] {
    let times = series("cuda:0", &[20e3; 9], &[], 1000.0);
    let stats = times.raw_ns.map(|raw| Stats { max: ns, mean: ns, sum: ns, ..raw });
    let histogram = [(20e3, count), (21e3, count)].into_iter().collect();
    let (timed, measured, fed) = (count, count, count);
    let series = Series { timed, measured, fed, raw_ns: stats, histogram, ..times };
    let sites = ["f", "g"].map(|name| site(name, 1, vec![series.clone()]));
    [1, 2].map(|pid| {
        let report = report(pid, vec![gpu("cuda:0", "H200")], sites.to_vec());
        folder.report(&format!("much{pid}"), &report)
    })
}

#[test]
fn as_much_as_can_be_counted_is_shown_and_merged() {
    let folder = Folder::new();
    for count in [1 << 63, u64::MAX] {
        let [file, other] = too_much(&folder, count, 20e3);
        assert!(tool(&["html".into(), file.clone()]).fine().contains("18\u{202f}446\u{202f}744"));
        let merged = folder.path("merged");
        tool(&["merge".into(), file, other, "-o".into(), merged.clone()]).fine();
        tool(&["show".into(), merged]).fine();
    }
}

#[test]
fn what_adds_up_to_no_number_is_not_merged() {
    let folder = Folder::new();
    let [file, other] = too_much(&folder, 9, 1e308);
    tool(&["show".into(), file.clone()]).fine();
    let line = tool(&["merge".into(), file, other]).refused();
    assert_eq!(
        line,
        "the reports cannot be merged: the times or the work of `f` come to more than a number can hold"
    );
}

/// What can happen to a text, or to a value in it.
#[derive(Clone, Debug)]
enum Harm {
    Cut(Index),
    Byte(Index, u8),
    Number(Index, String),
}

fn harm() -> impl Strategy<Value = Harm> {
    let number = prop_oneof![
        Just("0".to_owned()),
        Just("-1".to_owned()),
        Just("1e308".to_owned()),
        Just("-1e308".to_owned()),
        Just("18446744073709551615".to_owned()),
        Just("null".to_owned()),
        Just("\"\\u001b[31m\"".to_owned()),
        Just("[[1,2]]".to_owned()),
    ];
    prop_oneof![
        any::<Index>().prop_map(Harm::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Harm::Byte(at, byte)),
        (any::<Index>(), number).prop_map(|(at, text)| Harm::Number(at, text)),
    ]
}

fn harmed(text: &str, harms: &[Harm]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for harm in harms {
        match harm {
            Harm::Cut(at) => bytes.truncate(at.index(bytes.len().max(1))),
            Harm::Byte(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Harm::Number(at, text) if !bytes.is_empty() => {
                let from = at.index(bytes.len());
                let is_digit = |b: &u8| b.is_ascii_digit();
                let Some(start) = bytes[from..].iter().position(is_digit) else { continue };
                let start = from + start;
                let rest = bytes[start..].iter();
                let length = rest.take_while(|b| is_digit(b) || **b == b'.').count();
                bytes.splice(start..start + length, text.bytes());
            }
            Harm::Byte(..) | Harm::Number(..) => {}
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn harmed_reports_are_read_or_refused(harms in prop::collection::vec(harm(), 1..4)) {
        let text = std::fs::read_to_string(first()).unwrap();
        if let Ok(report) = Snapshot::from_json(&harmed(&text, &harms)) {
            for text in [report.to_string(), report.to_csv()] {
                prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{}", text);
            }
            _ = report.to_json();
        }
    }
}

proptest! {
    // Each is four or five runs of the tool.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_tool_takes_what_is_harmed(harms in prop::collection::vec(harm(), 1..4)) {
        let folder = Folder::new();
        let text = std::fs::read_to_string(first()).unwrap();
        let file = folder.write("harmed", harmed(&text, &harms));
        for run in [
            tool(&["show".into(), file.clone()]),
            tool(&["html".into(), file.clone()]),
            tool(&["compare".into(), first(), file.clone()]),
        ] {
            prop_assert!(matches!(run.code, Some(0..=2)), "{}", run.stderr);
            prop_assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        }
        let merged = folder.path("merged");
        // Of another process.
        let other = text.replacen("\"pid\": 4242", "\"pid\": 4243", 1);
        let other = folder.write("other", harmed(&other, &harms));
        let merge = ["merge".into(), file, other, "-o".into(), merged.clone()];
        if tool(&merge).code == Some(0) {
            let shown = tool(&["show".into(), merged]);
            prop_assert_eq!((shown.code, &*shown.stderr), (Some(0), ""));
        } else {
            prop_assert!(!merged.exists());
        }
    }
}
