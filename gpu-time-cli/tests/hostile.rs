//! Invalid and malicious input: the error message names the file, and the tool does not panic.

use std::path::PathBuf;

use gpu_time_report::{Node, Snapshot, Source, value};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::fixtures::{gpu, report, series, site};
use crate::opened_calls::opened;
use crate::{Folder, TOOL, run, stored, tool};

#[test]
fn invalid_report_is_refused() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(stored()).unwrap();
    let half = &text[..text.len() / 2];
    let future = text.replacen("gpu-time/1", "gpu-time/2", 1);
    for (name, text, why) in [
        ("empty", "", "the JSON ends early: "),
        ("half", half, "the JSON ends early: "),
        ("text", "# notes", "not JSON: "),
        ("trace", "{\"traceEvents\": []}", "not a report of gpu-time: it has no `schema` name"),
        ("list", "[1, 2]", "not a report of gpu-time: it has no `schema` name"),
        ("future", &future, "unsupported schema \"gpu-time/2\": this version reads `gpu-time/1`"),
        ("escape\u{1b}[2J", "{}", "not a report"),
    ] {
        let file = folder.write(name, text);
        for command in ["show", "merge"] {
            let line = tool(&[command.into(), file.clone()]).refusal();
            assert!(line.contains(&format!("{}`: {why}", name.escape_default())), "{line}");
        }
        let line = tool(&["compare".into(), stored(), file]).refusal();
        assert!(line.contains(why), "{line}");
    }
    let line = tool(&["show".into(), folder.path("missing")]).refusal();
    assert!(line.starts_with("cannot read `") && line.contains("missing`: "), "{line}");
    let line = tool(&["show".into(), folder.path("")]).refusal();
    assert!(line.starts_with("cannot read `"), "{line}");
}

#[test]
fn too_large_file_is_refused() {
    let folder = Folder::new();
    let file = folder.write("huge", "");
    // A sparse file takes no disk space.
    std::fs::File::options().write(true).open(&file).unwrap().set_len(5 << 30).unwrap();
    let line = tool(&["show".into(), file]).refusal();
    let why = "huge` is too large: it has more than 5120 MiB, and at most 256 MiB are read";
    assert!(line.ends_with(why), "{line}");
    let zeros = std::fs::File::open("/dev/zero").unwrap();
    let line = run(std::process::Command::new(TOOL).args(["show", "-"]).stdin(zeros)).refusal();
    assert!(line.contains(" too large: ") && line.contains(" 256 MiB "), "{line}");
}

#[test]
fn too_many_values_and_too_long_texts_are_refused() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(stored()).unwrap();
    let long = text.replacen("app::train", &"a".repeat(16 << 20), 1);
    let many =
        text.replacen("\"key\"", &format!("\"new\": [{}0], \"key\"", "0,".repeat(20 << 20)), 1);
    assert!(long.len() > text.len() && many.len() > text.len());
    for (name, text, why) in [
        (
            "long",
            long,
            "too large: 16\u{202f}777\u{202f}216 bytes in a name or another text: at most ",
        ),
        ("many", many, "too large: 20\u{202f}972\u{202f}"),
    ] {
        let line = tool(&["show".into(), folder.write(name, text)]).refusal();
        assert!(line.contains(why) && line.ends_with(" are read"), "{line}");
    }
}

#[test]
fn hostile_texts_reach_no_output() {
    const HOSTILE: &str = "\u{9b}31m\u{85}\u{202e}\u{2028}\u{2066}\n";
    let folder = Folder::new();
    let kernels = opened(4, &[(&format!("gemm{HOSTILE}"), 2, 9_000.0)]);
    let times = series("cuda:0", &[5000.0; 9], &[], 0.0);
    let key = Some(format!("key{HOSTILE}"));
    let times = value!(Series { timed: 13, kernel_times: Some(kernels), key, ..times });
    let name = format!("f{HOSTILE}");
    let report = report(1, vec![gpu("cuda:0", "H200")], vec![site(&name, 1, vec![times])]);
    let path = value!(Node { name, self_ns: 2e3, ..Node::of(Source::Opened) });
    let json = report.with_tree(vec![path]).to_json();
    // Written by somebody else, who does not escape anything.
    let hostile = HOSTILE.replace('\n', "\\n");
    let forged =
        json.replace("\\\\u{9b}31m\\\\u{85}\\\\u{202e}\\\\u{2028}\\\\u{2066}\\\\n", &hostile);
    assert_eq!(forged.matches(&hostile).count(), 4, "{json}");
    let forged = forged.replacen("\"label\": null", &format!("\"label\": \"{hostile}\""), 1);
    let file = folder.write("forged", forged.replacen("\"pid\": 1", "\"pid\": 2", 1));
    let same = folder.write("same", forged);
    let formats =
        ["table", "tree", "json", "csv", "folded", "pprof", "bmf", "github-action-benchmark"];
    let shown = formats.map(|format| vec!["show", "--format", format]);
    let compared =
        ["table", "json", "markdown", "html"].map(|format| vec!["compare", "--format", format]);
    let commands = shown.into_iter().chain(compared).chain([vec!["html"], vec!["merge"]]);
    for mut command in commands {
        command.push(file.to_str().unwrap());
        if command[0] == "compare" || command[0] == "merge" {
            command.push(same.to_str().unwrap());
        }
        let is_binary = command.contains(&"pprof");
        let text = if is_binary {
            let output = std::process::Command::new(TOOL).args(&command).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        } else {
            tool(&command).success()
        };
        let is_control = |c: char| !is_binary && c != '\n' && c.is_control();
        let hidden = |c: char| is_control(c) || !c.is_ascii() && HOSTILE.contains(c);
        assert_eq!(text.find(hidden).map(|at| &text[at.saturating_sub(60)..]), None, "{command:?}");
        assert!(text.contains("\\u{202e}"), "{command:?}: {text}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let folder = Folder::new();
    for field in ["devices", "unknown"] {
        let deep = format!("{{\"schema\": \"gpu-time/1\", \"{field}\": {}", "[".repeat(1_000_000));
        let line = tool(&["show".into(), folder.write("deep", deep)]).refusal();
        assert!(line.contains("deep`: "), "{line}");
    }
}

/// Writes two reports, in which every series has `count` samples of up to `ns`.
fn two_large(folder: &Folder, count: u64, ns: f64) -> [PathBuf; 2] {
    let times = series("cuda:0", &[20e3; 9], &[], 1000.0);
    let stats = times.raw_ns.map(|raw| value!(Stats { max: ns, mean: ns, sum: ns, ..raw }));
    let histogram = [(20e3, count), (21e3, count)].into_iter().collect();
    let (timed, measured, fed) = (count, count, count);
    let series = value!(Series { timed, measured, fed, raw_ns: stats, histogram, ..times });
    let sites = ["f", "g"].map(|name| site(name, 1, vec![series.clone()]));
    [1, 2].map(|pid| {
        let report = report(pid, vec![gpu("cuda:0", "H200")], sites.to_vec());
        folder.report(&format!("much{pid}"), &report)
    })
}

#[test]
fn largest_counts_are_shown_and_merged() {
    let folder = Folder::new();
    for count in [1 << 63, u64::MAX] {
        let [file, other] = two_large(&folder, count, 20e3);
        assert!(
            tool(&["html".into(), file.clone()]).success().contains("18\u{202f}446\u{202f}744")
        );
        let merged = folder.path("merged");
        tool(&["merge".into(), file, other, "-o".into(), merged.clone()]).success();
        tool(&["show".into(), merged]).success();
    }
}

/// Each figure is brought into its range when a report is read, so that sums are finite.
#[test]
fn sums_of_forged_times_are_finite() {
    let folder = Folder::new();
    let [file, other] = two_large(&folder, 9, 1e308);
    tool(&["show".into(), file.clone()]).success();
    let merged = folder.path("merged");
    tool(&["merge".into(), file, other, "-o".into(), merged.clone()]).success();
    tool(&["show".into(), merged]).success();
}

#[test]
fn change_from_the_smallest_number_is_unknown() {
    let folder = Folder::new();
    let [base, new] = [5e-324, 20e3].map(|median| {
        let times = series("cuda:0", &[20e3; 9], &[], 0.0);
        let stats = times.raw_ns.map(|raw| value!(Stats { median, ..raw }));
        let series = value!(Series { raw_ns: stats, net_ns: stats, ..times });
        let report = report(1, vec![gpu("cuda:0", "H200")], vec![site("f", 1, vec![series])]);
        folder.report(&format!("median{median:e}"), &report)
    });
    let text = tool(&["compare".into(), base, new]).success();
    assert!(text.contains("above the bias") && !text.contains("inf"), "{text}");
}

/// A corruption of a file: truncation, a changed byte, or a replaced number.
#[derive(Clone, Debug)]
enum Corruption {
    Cut(Index),
    Byte(Index, u8),
    Number(Index, String),
}

fn corruption() -> impl Strategy<Value = Corruption> {
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
        any::<Index>().prop_map(Corruption::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Corruption::Byte(at, byte)),
        (any::<Index>(), number).prop_map(|(at, text)| Corruption::Number(at, text)),
    ]
}

fn corrupt(text: &str, corruptions: &[Corruption]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for corruption in corruptions {
        match corruption {
            Corruption::Cut(at) => bytes.truncate(at.index(bytes.len().max(1))),
            Corruption::Byte(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Corruption::Number(at, text) if !bytes.is_empty() => {
                let from = at.index(bytes.len());
                let is_digit = |b: &u8| b.is_ascii_digit();
                let Some(start) = bytes[from..].iter().position(is_digit) else { continue };
                let start = from + start;
                let rest = bytes[start..].iter();
                let length = rest.take_while(|b| is_digit(b) || **b == b'.').count();
                bytes.splice(start..start + length, text.bytes());
            }
            Corruption::Byte(..) | Corruption::Number(..) => {}
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn corrupt_reports_are_read_or_refused(
        corruptions in prop::collection::vec(corruption(), 1..4),
    ) {
        let text = std::fs::read_to_string(stored()).unwrap();
        if let Ok(report) = Snapshot::from_json(&corrupt(&text, &corruptions)) {
            for text in [report.to_string(), report.to_csv()] {
                prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{}", text);
            }
            _ = report.to_json();
        }
    }
}

proptest! {
    // Each case runs the tool four or five times.
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn commands_survive_corrupt_reports(
        corruptions in prop::collection::vec(corruption(), 1..4),
    ) {
        let folder = Folder::new();
        let text = std::fs::read_to_string(stored()).unwrap();
        let file = folder.write("corrupt", corrupt(&text, &corruptions));
        for run in [
            tool(&["show".into(), file.clone()]),
            tool(&["html".into(), file.clone()]),
            tool(&["compare".into(), stored(), file.clone()]),
        ] {
            prop_assert!(matches!(run.code, Some(0..=2)), "{}", run.stderr);
            prop_assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
        }
        let merged = folder.path("merged");
        // Another process id, so that merging does not refuse the report as a duplicate.
        let other = text.replacen("\"pid\": 4242", "\"pid\": 4243", 1);
        let other = folder.write("other", corrupt(&other, &corruptions));
        let merge = ["merge".into(), file, other, "-o".into(), merged.clone()];
        if tool(&merge).code == Some(0) {
            let shown = tool(&["show".into(), merged]);
            prop_assert_eq!((shown.code, &*shown.stderr), (Some(0), ""));
        } else {
            prop_assert!(!merged.exists());
        }
    }
}
