//! Formats of comparisons.

use std::path::PathBuf;
use std::process::Command;

use gpu_time_report::value;

use crate::fixtures::{gpu, report, series, site};
use crate::{Folder, TOOL, run, tool};

/// Writes two reports of functions, one of them with a hostile name.
fn two(folder: &Folder) -> [PathBuf; 2] {
    [("base", [21e3, 21e3, 21e3]), ("new", [23e3, 21e3, 17e3])].map(|(file, times)| {
        let names = ["slow", "same", "a|`b`<i>@all\u{1b}"];
        let sites = std::iter::zip(names, times).map(|(name, ns)| {
            let times: Vec<f64> = (0..101).map(|i| ns * (0.99 + 0.0002 * f64::from(i))).collect();
            site(name, 1, vec![series("cuda:0", &times, &[], 1000.0)])
        });
        folder.report(file, &report(1, vec![gpu("cuda:0", "H200")], sites.collect()))
    })
}

fn compare(folder: &Folder, format: &str) -> String {
    let [base, new] = two(folder);
    let format = format!("--format={format}").into();
    let run = tool(&["compare".into(), "--between-runs=0%".into(), format, base, new]);
    assert_eq!((run.code, &*run.stderr), (Some(1), ""));
    run.stdout
}

#[test]
fn table_is_coloured_on_request() {
    let folder = Folder::new();
    let [base, new] = two(&folder);
    let coloured = |variable: &str| {
        let mut command = Command::new(TOOL);
        command.env_remove("NO_COLOR").env(variable, "1");
        run(command.args(["compare", "--between-runs=0%"]).args([&base, &new])).stdout
    };
    let text = coloured("CLICOLOR_FORCE");
    assert!(text.contains("\u{1b}[1m\u{1b}[31mslower\u{1b}[0m\n"), "{text:?}");
    assert!(text.contains("\u{1b}[32mfaster\u{1b}[0m\n"), "{text:?}");
    let plain = coloured("NO_COLOR");
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    let stripped = without_colours(&text);
    assert_eq!(stripped, plain);
}

/// Removes the escape sequences of colours.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn json_has_all_figures() {
    let json = compare(&Folder::new(), "json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["schema"], "gpu-time-comparison/1");
    assert_eq!((&json["slower"], &json["same"]), (&1.into(), &1.into()));
    let slow = &json["series"][0];
    assert_eq!((&slow["name"], &slow["verdict"]), (&"slow on cuda:0".into(), &"slower".into()));
    assert_eq!((&slow["base_median_ns"], &slow["runs"][1]), (&19_999.5.into(), &1.into()));
    let change = slow["change"].as_f64().unwrap();
    let [low, high] = [0, 1].map(|i| slow["interval95"][i].as_f64().unwrap());
    assert!(low < change && change < high && (change - 0.1).abs() < 1e-5, "{slow}");
    assert!(slow["p_value"].as_f64().unwrap() < 1e-6);
    assert_eq!(slow.get("why"), None);
}

#[test]
fn markdown_is_a_pull_request_comment() {
    let text = compare(&Folder::new(), "markdown");
    let (changed, same) = text.split_once("<details><summary>1 the same</summary>\n\n").unwrap();
    let (summary, _) = changed.split_once("**\n\n| function |").unwrap();
    assert!(summary.starts_with("**gpu-time: 1 slower, 1 faster, "), "{summary}");
    assert!(
        changed.contains("\n| `slow on cuda:0` | 20.00 µs | 22.00 µs | +10.0% | +9."),
        "{text}"
    );
    assert!(changed.contains("| 🔴 slower |\n"), "{text}");
    // A name cannot leave its cell or its code.
    assert!(changed.contains("\n| `` a\\|`b`<i>@all\\u{1b} on cuda:0 `` | "), "{text}");
    assert!(same.contains("\n| `same on cuda:0` | ") && same.contains("\n</details>\n"), "{text}");
}

/// The biases come from different sources, so the table compares raw times.
#[test]
fn html_draws_the_times_that_are_compared() {
    let folder = Folder::new();
    let of = |file: &str, source: &str| {
        let site = site("f", 1, vec![series("cuda:0", &[9_000.0; 40], &[], 1_000.0)]);
        let source = Some(source.to_owned());
        let gpu = value!(Device { event_bias_source: source, ..gpu("cuda:0", "H200") });
        folder.report(file, &report(1, vec![gpu], vec![site]))
    };
    let base = of("base", "table");
    let drawn = |new: PathBuf| {
        let page = tool(&["compare".into(), base.clone(), new, "--format=html".into()]).success();
        let (_, label) = page.split_once("aria-label=\"").expect("a chart");
        label.split_once('"').expect("a label").0.to_owned()
    };
    let [net, raw] = [of("same", "table"), of("other", "floor")].map(drawn);
    assert!(net.ends_with(" from 7.989 µs to 8.022 µs"), "{net}");
    assert!(raw.ends_with(" from 8.985 µs to 9.022 µs"), "{raw}");
}

#[test]
fn html_draws_both_distributions() {
    let page = compare(&Folder::new(), "html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{page}");
    assert_eq!(page.matches("<svg ").count(), 3);
    assert_eq!(page.matches("<path class=\"base\"").count(), 3);
    assert_eq!(page.matches("<path class=\"new\"").count(), 3);
    assert!(page.contains("<td class=\"slower\">slower</td>"), "{page}");
    assert!(page.contains("a|`b`&lt;i&gt;@all\\u{1b} on cuda:0"), "{page}");
    for outside in ["http:", "https:", "<script", "src=", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}
