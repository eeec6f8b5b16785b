use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use crate::base::standard::Standard;
use crate::config::options::Options;
use crate::config::path_pattern::PathPattern;
use crate::config::targets::{Format, Sink, Target};
use crate::config::*;
use crate::stats::bias::ConfiguredBias;
use crate::types::attribute::{Cold, Hold};
#[cfg(feature = "kernels")]
use crate::types::record_mode::PhasePlan;
use crate::types::sampling::Sampling;
use gpu_time_report::Detail;

fn options(vars: &[(&str, &str)]) -> (Options, Vec<String>) {
    Options::from_vars(vars.iter().map(|(name, value)| (name.into(), value.into())))
}

fn config(vars: &[(&str, &str)]) -> (Config, Vec<String>) {
    let (options, problems) = options(vars);
    (Config::new(options), problems)
}

fn default() -> Config {
    Config::new(Options::default())
}

fn good(name: &str, value: &str) -> Config {
    let (config, problems) = config(&[(name, value)]);
    assert_eq!(problems, Vec::<String>::new());
    config
}

/// Returns the only message about an invalid value, and checks that the default applies instead.
fn bad(name: &str, value: &str) -> String {
    let (config, mut problems) = config(&[(name, value)]);
    // A table shows the warning, even in a test harness.
    let targets = config.targets.clone();
    let shows_table = name == "GPU_TIME_REPORT";
    assert_eq!((targets.contains(&Target::TABLE), targets.every), (shows_table, None), "{value}");
    assert_eq!(config, Config { targets, ..default() }, "{name}={value}");
    assert_eq!(problems.len(), 1, "{problems:?}");
    problems.remove(0)
}

fn file(format: Format, path: &str) -> Target {
    Target {
        format,
        sink: Sink::File(PathPattern::parse(path, &std::env::current_dir().unwrap()).unwrap()),
    }
}

#[test]
fn unset_variables_leave_defaults() {
    let (config, problems) = config(&[]);
    assert_eq!(problems, Vec::<String>::new());
    assert!(config.is_on && config.filter.admits("anything"));
    assert_eq!(config.targets[..], [], "these are tests");
    assert_eq!(config.warmup.unwrap_or(7), 7);
    assert_eq!(config.cold.unwrap_or(Some(Cold::Dirty)), Some(Cold::Dirty));
    assert_eq!(config.hold.unwrap_or(None), None);
}

#[test]
fn empty_or_blank_variable_is_unset() {
    for name in
        ["GPU_TIME", "GPU_TIME_REPORT", "GPU_TIME_FILTER", "GPU_TIME_LABEL", "GPU_TIME_SLEEP"]
    {
        assert_eq!(good(name, ""), default());
        assert_eq!(options(&[(name, " \t")]), (Options::default(), Vec::new()));
    }
}

#[test]
fn switch_takes_the_usual_words() {
    for off in ["off", "0", "false", "no", "OFF", "False", " No "] {
        assert!(!good("GPU_TIME", off).is_on, "{off}");
    }
    for on in ["on", "1", "true", "yes", "ON", "True"] {
        assert!(good("GPU_TIME", on).is_on, "{on}");
    }
}

#[test]
fn options_are_off_by_the_same_words() {
    for off in ["off", "0", "false", "no", "OFF", "False", " No "] {
        assert_eq!(good("GPU_TIME_COLD", off).cold, Some(None), "{off}");
        assert_eq!(good("GPU_TIME_SLEEP", off).hold, Some(None), "{off}");
        assert_eq!(good("GPU_TIME_RECORD", off).recording, Some(RecordMode::Off), "{off}");
    }
}

#[test]
fn variables_override_attributes() {
    assert_eq!(good("GPU_TIME_WARMUP", "0").warmup.unwrap_or(7), 0);
    assert_eq!(good("GPU_TIME_COLD", "off").cold.unwrap_or(Some(Cold::Clean)), None);
    for on in ["clean", "on", "1", "Yes"] {
        assert_eq!(good("GPU_TIME_COLD", on).cold.unwrap_or(None), Some(Cold::Clean));
    }
    assert_eq!(good("GPU_TIME_COLD", "dirty").cold.unwrap_or(Some(Cold::Clean)), Some(Cold::Dirty));
    for (text, share) in [("0.01", 0.01), ("1%", 0.01), ("2.5 %", 0.025), ("1", 1.0)] {
        let sampling = good("GPU_TIME_SAMPLE", text).sampling.unwrap_or(Sampling::every(7));
        assert_eq!(sampling, Sampling::share(share));
    }
    assert_eq!(good("GPU_TIME_BUDGET", "1%").budget, Some(0.01));
    assert_eq!(good("GPU_TIME_SAMPLE", "0").sampling.unwrap_or(Sampling::ALL).rate(), 0.0);
    assert_eq!(good("GPU_TIME_SLEEP", "off").hold.unwrap_or(Some(Hold::UntilEnqueued)), None);
    for on in ["on", "ON", "true", "yes"] {
        assert_eq!(good("GPU_TIME_SLEEP", on).hold.unwrap_or(None), Some(Hold::UntilEnqueued));
    }
}

#[test]
#[cfg(feature = "kernels")]
fn recording_takes_a_switch_phases_or_a_start() {
    let ms = Duration::from_millis;
    let phases =
        |length, period| RecordMode::Phases(PhasePlan::new(ms(length), ms(period)).unwrap());
    assert_eq!(default().recording, None);
    for (text, recording) in [
        ("on", RecordMode::On),
        (" Yes ", RecordMode::On),
        ("20ms/1s", phases(20, 1_000)),
        ("20 ms / 0.5 s", phases(20, 500)),
        ("5ms/5ms", phases(5, 5)),
        ("start:30s", RecordMode::Start(ms(30_000))),
        ("start: 1ms", RecordMode::Start(ms(1))),
    ] {
        assert_eq!(good("GPU_TIME_RECORD", text).recording, Some(recording), "{text}");
    }
    for wrong in [
        "2", "1%", "1s/20ms", "0ms/1s", "1us/1s", "11s/1h", "20ms", "start:", "start:0s",
        "start:2h",
    ] {
        let problem = bad("GPU_TIME_RECORD", wrong);
        let expected = format!(
            "invalid value `{wrong}` for `GPU_TIME_RECORD`: expected `on`, `off`, a length from "
        );
        assert!(problem.starts_with(&expected), "{problem}");
    }
}

#[test]
#[cfg(not(feature = "kernels"))]
fn records_without_their_feature_are_named() {
    assert_eq!(
        bad("GPU_TIME_CUPTI", "/nope"),
        "invalid value `/nope` for `GPU_TIME_CUPTI`: expected no value, because this build lacks \
         gpu-time's feature `kernels`"
    );
    for text in ["on", "20ms/1s", "start:30s"] {
        assert_eq!(
            bad("GPU_TIME_RECORD", text),
            format!(
                "invalid value `{text}` for `GPU_TIME_RECORD`: expected `off`, because this build \
                 lacks gpu-time's feature `kernels`"
            )
        );
    }
}

#[test]
fn ranges_are_off_or_need_their_feature() {
    assert_eq!((default().nvtx, good("GPU_TIME_NVTX", "off").nvtx), (None, Some(false)));
    let invalid = "invalid value `maybe` for `GPU_TIME_NVTX`: expected `on` or `off`";
    assert_eq!(bad("GPU_TIME_NVTX", "maybe"), invalid);
    if cfg!(feature = "nvtx") {
        assert_eq!(good("GPU_TIME_NVTX", "on").nvtx, Some(true));
    } else {
        assert!(bad("GPU_TIME_NVTX", "on").ends_with(" feature `nvtx`"));
    }
}

#[test]
fn notes_are_brief_or_all() {
    assert_eq!(default().detail, Detail::Brief);
    assert_eq!(good("GPU_TIME_NOTES", "brief").detail, Detail::Brief);
    assert_eq!(good("GPU_TIME_NOTES", " all ").detail, Detail::All);
    let expected = "invalid value `5` for `GPU_TIME_NOTES`: expected `brief` or `all`";
    assert_eq!(bad("GPU_TIME_NOTES", "5"), expected);
}

#[test]
fn label_is_short_printable_text() {
    assert_eq!(default().label, None);
    assert_eq!(good("GPU_TIME_LABEL", " abc123 fused ").label.as_deref(), Some("abc123 fused"));
    for wrong in ["two\nlines", "a\ttab", "\u{1b}[31m", "\u{202e}b", &"x".repeat(201)] {
        let shown = wrong.escape_debug();
        let expected = format!(
            "invalid value `{shown}` for `GPU_TIME_LABEL`: expected printable text of at most 200 bytes"
        );
        assert_eq!(bad("GPU_TIME_LABEL", wrong), expected);
    }
}

#[test]
fn times_have_unit_and_bound() {
    for (text, ns) in [
        ("50us", 50_000),
        ("50 \u{b5}s", 50_000),
        ("50\u{3bc}s", 50_000),
        ("1.5ms", 1_500_000),
        ("7ns", 7),
        ("1s", 1_000_000_000),
    ] {
        assert_eq!(good("GPU_TIME_SLEEP", text).hold.unwrap_or(None), Some(Hold::For(ns)));
    }
    for text in ["50", "us", "-5us", "0ns", "1.1s", "1h", "1e3us", "1.2.3us", "µ", "NaNus"] {
        bad("GPU_TIME_SLEEP", text);
    }
}

#[test]
fn bias_is_time_or_empty_kernel_time() {
    for (text, bias) in [
        ("2.2us", ConfiguredBias::Bias(2_200.0)),
        ("2205 ns", ConfiguredBias::Bias(2_205.0)),
        ("0ns", ConfiguredBias::Bias(0.0)),
        ("cupti:545ns", ConfiguredBias::KernelBase(545.0)),
        ("cupti: 0.8us", ConfiguredBias::KernelBase(800.0)),
    ] {
        assert_eq!(good("GPU_TIME_BIAS", text).bias, Some(bias));
    }
    for text in ["2205", "-1ns", "2s", "1.1ms", "cupti", "cupti:", "cupti:545", "floor", "NaNns"] {
        assert_eq!(
            bad("GPU_TIME_BIAS", text),
            format!(
                "invalid value `{text}` for `GPU_TIME_BIAS`: expected a time up to `1ms` such as \
                 `2.2us`, or CUPTI's time of an empty kernel such as `cupti:545ns`"
            )
        );
    }
}

#[test]
fn trace_length_is_bounded() {
    assert_eq!(good("GPU_TIME_REPORT", "table").trace_last(), None);
    assert_eq!(good("GPU_TIME_REPORT", "trace:t.json").trace_last(), Some(100_000));
    let traced = |last: &str| {
        config(&[("GPU_TIME_REPORT", "trace:t"), ("GPU_TIME_TRACE_LAST", last)]).0.trace_last()
    };
    assert_eq!(traced("7"), Some(7));
    for last in ["0", "1000001", "-1", "all"] {
        assert_eq!(
            bad("GPU_TIME_TRACE_LAST", last),
            format!(
                "invalid value `{last}` for `GPU_TIME_TRACE_LAST`: expected a whole number from \
                 `1` to `1000000`"
            )
        );
    }
    let (off, _) = config(&[("GPU_TIME_REPORT", "trace:t"), ("GPU_TIME", "off")]);
    assert_eq!(off.trace_last(), None);
}

#[test]
fn environment_wins_over_program() {
    let read = |vars: &[(&str, &str)]| options(vars).0;
    let program = read(&[("GPU_TIME_WARMUP", "1"), ("GPU_TIME_COLD", "clean")]);
    let merged = read(&[("GPU_TIME_WARMUP", "2")]).or(program.clone());
    assert_eq!(merged, read(&[("GPU_TIME_WARMUP", "2"), ("GPU_TIME_COLD", "clean")]));
    // A variable wins even if its value is invalid.
    let invalid = Config::new(read(&[("GPU_TIME_COLD", "icy")]).or(program.clone()));
    assert_eq!((invalid.cold.unwrap_or(None), invalid.warmup.unwrap_or(0)), (None, 1));
    assert_eq!(Options::default().or(program.clone()), program);
    // So does one that removes a limit.
    let limited = read(&[("GPU_TIME_BUDGET", "1%")]);
    for off in ["off", "No"] {
        let unlimited = read(&[("GPU_TIME_BUDGET", off)]).or(limited.clone());
        assert_eq!(unlimited.budget, Some(Some(None)));
        assert_eq!(Config::new(unlimited).budget, None);
    }
}

#[test]
fn invalid_value_is_named_with_the_valid_ones() {
    let on_or_off = "invalid value `maybe` for `GPU_TIME`: expected `on` or `off`";
    assert_eq!(bad("GPU_TIME", "maybe"), on_or_off);
    for wrong in ["-1", "5000000000"] {
        assert_eq!(
            bad("GPU_TIME_WARMUP", wrong),
            format!(
                "invalid value `{wrong}` for `GPU_TIME_WARMUP`: expected a whole number up to \
                 `4294967295`, such as `10`"
            )
        );
    }
    let cold = bad("GPU_TIME_COLD", "\u{1b}[31m");
    assert!(cold.starts_with("invalid value `\\u{1b}[31m` "), "{cold}");
    assert!(cold.ends_with("`clean` or `dirty`"), "{cold}");
    assert_eq!(
        bad("GPU_TIME_FILTER", "!"),
        "invalid value `!` for `GPU_TIME_FILTER`: expected a name with `*` for any text, such as \
         `app::*` or `!app::slow`"
    );
    for wrong in ["1.1", "-0.1", "101%", "NaN", "%", "one", "0.1 %%"] {
        assert_eq!(
            bad("GPU_TIME_SAMPLE", wrong),
            format!(
                "invalid value `{wrong}` for `GPU_TIME_SAMPLE`: expected a share from `0` to `1`, \
                 such as `0.01` or `1%`"
            )
        );
    }
    for wrong in ["1", "0", "0%", "100%", "-1%", "NaN", "%"] {
        assert_eq!(
            bad("GPU_TIME_BUDGET", wrong),
            format!(
                "invalid value `{wrong}` for `GPU_TIME_BUDGET`: expected `off` or a share above \
                 `0` and below `1`, such as `0.01` or `1%`"
            )
        );
    }
    let report = |entry: &str| {
        let start = format!("invalid value `{entry}` for `GPU_TIME_REPORT`: ");
        bad("GPU_TIME_REPORT", entry).strip_prefix(&start).unwrap().to_owned()
    };
    assert!(report("what:x").starts_with("expected `table`, "));
    for (entry, meant) in [
        ("tabel", "table"),
        ("jsn:x", "json:PATH"),
        ("out/r.json", "json:out/r.json"),
        ("log.txt", "table:log.txt"),
        ("non", "none"),
    ] {
        let expected = format!("did you mean `{meant}`, or ");
        assert!(report(entry).starts_with(&expected), "{}", report(entry));
    }
    for entry in ["table json:r.json", "table;json:r.json", "table ; json:r.json"] {
        let expected = "targets are separated by commas: `table,json:r.json`";
        assert_eq!(report(entry), expected);
    }
    assert!(report(";").starts_with("expected `table`, "));
    let with_blank = "json:/folder/my table";
    targets::of_program(with_blank, &mut |entry, why| panic!("{entry}: {why}"));
    #[cfg(not(feature = "html"))]
    assert!(report("html:x").contains("feature `html`"));
    for (entry, format) in [("json", "json"), ("csv:", "csv")] {
        let expected = report(entry);
        let has = |target: &str| expected.contains(&format!("`{format}:{target}`"));
        assert!(has("PATH") && has("-"), "{expected}");
    }
}

#[test]
fn value_outside_utf8_is_invalid() {
    use std::os::unix::ffi::OsStringExt;
    let value = OsString::from_vec(vec![b'o', 0xff]);
    let (options, problems) = Options::from_vars([("GPU_TIME".into(), value)]);
    assert_eq!(Config::new(options), default());
    assert!(
        matches!(&problems[..], [only] if only.contains("`o\u{fffd}`") && only.ends_with(" UTF-8"))
    );
}

#[test]
fn invalid_value_affects_no_other() {
    let (config, problems) = config(&[
        ("GPU_TIME_WARMUP", "3"),
        ("GPU_TIME_COLD", "icy"),
        ("GPU_TIME_FILTER", "a::*,!,!a::b"),
        ("GPU_TIME_REPORT", "json:r.json,what"),
    ]);
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!(config.warmup.unwrap_or(0), 3);
    assert!(
        config.filter.admits("a::c") && !config.filter.admits("a::b") && !config.filter.admits("c")
    );
    assert_eq!(config.targets[..], [file(Format::Json, "r.json"), Target::TABLE]);
}

#[test]
fn targets_are_parsed() {
    assert_eq!(good("GPU_TIME_REPORT", "none").targets[..], []);
    assert_eq!(good("GPU_TIME_REPORT", "table").targets[..], [Target::TABLE]);
    assert_eq!(
        good("GPU_TIME_REPORT", " table: t.txt, json: -,csv:c:/a b-%p.csv,").targets[..],
        [
            file(Format::Table, "t.txt"),
            Target { format: Format::Json, sink: Sink::Standard(Standard::Stdout) },
            file(Format::Csv, "c:/a b-%p.csv"),
        ]
    );
}

#[test]
fn period_of_reports_needs_a_file() {
    let targets = good("GPU_TIME_REPORT", "table,json:a,every=10s").targets;
    assert_eq!((targets.len(), targets.every), (2, Some(Duration::from_secs(10))));
    assert_eq!(good("GPU_TIME_REPORT", "json:a").targets.every, None);
    for text in ["every=10ms", "every=soon"] {
        assert!(bad("GPU_TIME_REPORT", text).contains("from `1s` to"), "{text}");
    }
    assert!(bad("GPU_TIME_REPORT", "table,every=10s").contains("expected a file"));
}

#[test]
fn double_comma_is_comma_in_path() {
    for (text, paths) in [
        ("json:a,,b", &["a,b"][..]),
        ("json:/com,,ma/r.json, json:c", &["/com,ma/r.json", "c"]),
        ("json:a,,,json:b,,,,c", &["a,", "b,,c"]),
    ] {
        let files: Vec<Target> = paths.iter().map(|path| file(Format::Json, path)).collect();
        assert_eq!(good("GPU_TIME_REPORT", text).targets[..], files, "{text}");
    }
    let problem = bad("GPU_TIME_REPORT", "ma.json");
    assert!(problem.contains("`,,` for "), "{problem}");
}

#[test]
fn duplicate_sink_is_rejected() {
    for twice in
        ["json:a,json:a", "json:a,csv:a", "table,json:-,table:-", "table,table", "trace:a,json:a"]
    {
        let (config, problems) = config(&[("GPU_TIME_REPORT", twice)]);
        assert_eq!(problems.len(), 1, "{twice}: {problems:?}");
        assert!(problems[0].contains("an earlier entry "));
        assert!(config.targets.contains(&Target::TABLE));
    }
    let (config, problems) = config(&[("GPU_TIME_REPORT", "none,json:a")]);
    assert_eq!(problems.len(), 1);
    assert_eq!(config.targets[..], [file(Format::Json, "a"), Target::TABLE]);
    // The same name in two directories.
    assert_eq!(good("GPU_TIME_REPORT", "json:a,csv:src/a").targets.len(), 2);
}

#[test]
fn missing_directory_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().display();
    let list = format!("table,json:-,csv:{folder}/a.csv,json:{folder}/no/r.json,table:/dev/null");
    let config = good("GPU_TIME_REPORT", &list);
    let messages = targets::doubts(&config.targets);
    assert_eq!(
        messages,
        [format!(
            "cannot write the report to `{folder}/no/r.json` yet: `{folder}/no`: No such file or directory (os \
             error 2)"
        )]
    );
}

#[test]
fn many_doubts_are_counted() {
    let list: Vec<String> = (0..3_000).map(|n| format!("json:/no/directory/{n}")).collect();
    let messages = targets::doubts(&good("GPU_TIME_REPORT", &list.join(",")).targets);
    assert_eq!(messages.len(), 21);
    assert!(messages[20].starts_with("2980 more "), "{}", messages[20]);
}

#[test]
fn path_through_file_or_to_directory_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let folder = folder.path().display();
    let list =
        format!("json:{folder}/file/a,csv:{folder}/file/b/c,table:{folder},folded:{folder}/file");
    let config = good("GPU_TIME_REPORT", &list);
    let messages = targets::doubts(&config.targets);
    assert_eq!(
        messages,
        [
            format!(
                "cannot write the report to `{folder}/file/a` yet: `{folder}/file`: Not a directory (os error 20)"
            ),
            format!(
                "cannot write the report to `{folder}/file/b/c` yet: `{folder}/file/b`: Not a directory (os error \
                 20)"
            ),
            format!("cannot write the report to `{folder}`: it is a directory"),
        ]
    );
}

#[test]
fn unset_variable_in_path_is_reported() {
    let config = good("GPU_TIME_REPORT", "json:/r-%q{GPU_TIME_TEST_RANK}.json,csv:/%q{PATH}.csv");
    let expected = "`%q{GPU_TIME_TEST_RANK}` is empty in the path of the report, `/r-.json`: \
                    `GPU_TIME_TEST_RANK` is not set";
    assert_eq!(targets::doubts(&config.targets)[0], expected);
}

#[test]
fn relative_path_becomes_absolute() {
    let config = good("GPU_TIME_REPORT", "json:sub/r.json");
    let [Target { sink: Sink::File(path), .. }] = &config.targets[..] else { panic!() };
    assert_eq!(path.path(), std::env::current_dir().unwrap().join("sub").join("r.json"));
}

#[test]
fn unknown_placeholder_is_named() {
    for (path, unknown) in
        [("r-%x.json", "%x"), ("r%", "%"), ("%q{RANK", "%q"), ("%P", "%P"), ("%\u{5}", r"%\u{5}")]
    {
        let problem = bad("GPU_TIME_REPORT", &format!("json:{path}"));
        let expected = format!("for `GPU_TIME_REPORT`: unknown `{unknown}`: expected `%p` ");
        assert!(problem.contains(&expected), "{problem}");
    }
}

#[test]
#[cfg(feature = "kernels")]
fn budget_has_room_for_a_part_of_the_run() {
    let with = |record| config(&[("GPU_TIME_BUDGET", "1%"), ("GPU_TIME_RECORD", record)]).0;
    for record in ["20ms/1s", "start:30s"] {
        assert!(with(record).may_record(), "{record}");
    }
    assert!(!with("on").may_record());
    // What recording costs is paid in a quarter of the time.
    let plan = |length_ms, period_ms| {
        let [length, period] = [length_ms, period_ms].map(Duration::from_millis);
        PhasePlan::new(length, period).map(RecordMode::Phases)
    };
    for (record, planned) in [("20ms/1s", plan(20, 1_000)), ("20ms/20ms", plan(20, 80))] {
        assert_eq!(with(record).ordered_recording(), planned, "{record}");
        let unlimited = good("GPU_TIME_RECORD", record);
        assert_eq!(unlimited.ordered_recording(), unlimited.recording);
    }
}

#[test]
#[cfg(feature = "kernels")]
fn budget_below_half_of_the_time_has_no_room_for_records() {
    for (budget, may_record) in [("off", true), ("99%", true), ("50%", true), ("49.9%", false)] {
        let config = good("GPU_TIME_BUDGET", budget);
        assert_eq!(
            (config.may_record(), config.why_no_records().is_none()),
            (may_record, may_record)
        );
    }
}
