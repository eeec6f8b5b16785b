use std::fs;
use std::path;

use crate::config::output::{Format, Sink};
use crate::config::*;

fn config(vars: &[(&str, &str)]) -> (Config, Vec<String>) {
    Config::from_vars(|name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
}

fn good(name: &str, value: &str) -> Config {
    let (config, complaints) = config(&[(name, value)]);
    assert_eq!(complaints, Vec::<String>::new());
    config
}

/// The one complaint about a value, after which the rest must be as without it.
fn bad(name: &str, value: &str) -> String {
    let (config, mut complaints) = config(&[(name, value)]);
    assert_eq!(Config { report: None, ..config }, Config::default(), "{name}={value}");
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    complaints.remove(0)
}

fn file(format: Format, path: &str) -> Target {
    Target { format, sink: Sink::File(path::absolute(path).unwrap()) }
}

#[test]
fn without_variables_everything_is_at_its_default() {
    let (config, complaints) = config(&[]);
    assert_eq!(complaints, Vec::<String>::new());
    assert!(config.is_on() && config.admits("anything"));
    assert_eq!(config.targets(), [Target::TABLE]);
    assert_eq!(config.warmup(7), 7);
    assert_eq!(config.cold(Some(Cold::Dirty)), Some(Cold::Dirty));
    assert_eq!(config.hold(None), None);
}

#[test]
fn an_empty_variable_is_not_set() {
    for name in
        ["GPU_TIME", "GPU_TIME_REPORT", "GPU_TIME_FILTER", "GPU_TIME_SAMPLE", "GPU_TIME_SLEEP"]
    {
        assert_eq!(good(name, ""), Config::default());
    }
}

#[test]
fn the_environment_overrides_the_sites() {
    assert!(!good("GPU_TIME", "off").is_on());
    assert!(good("GPU_TIME", "on").is_on());
    assert_eq!(good("GPU_TIME_WARMUP", "0").warmup(7), 0);
    assert_eq!(good("GPU_TIME_COLD", "off").cold(Some(Cold::Clean)), None);
    assert_eq!(good("GPU_TIME_COLD", "clean").cold(None), Some(Cold::Clean));
    assert_eq!(good("GPU_TIME_COLD", "dirty").cold(Some(Cold::Clean)), Some(Cold::Dirty));
    for (text, share) in [("0.01", 0.01), ("1%", 0.01), ("2.5 %", 0.025), ("1", 1.0)] {
        let sampling = good("GPU_TIME_SAMPLE", text).sampling(Sampling::every(7));
        assert_eq!(sampling, Sampling::share(share));
    }
    assert_eq!(good("GPU_TIME_BUDGET", "1%").budget(), Some(0.01));
    assert_eq!(good("GPU_TIME_SAMPLE", "0").sampling(Sampling::ALL).rate(), 0.0);
    assert_eq!(good("GPU_TIME_SLEEP", "off").hold(Some(Hold::UntilEnqueued)), None);
    assert_eq!(good("GPU_TIME_SLEEP", "on").hold(None), Some(Hold::UntilEnqueued));
}

#[test]
fn times_have_a_unit_and_a_bound() {
    for (text, ns) in [
        ("50us", 50_000),
        ("50 \u{b5}s", 50_000),
        ("50\u{3bc}s", 50_000),
        ("1.5ms", 1_500_000),
        ("7ns", 7),
        ("1s", 1_000_000_000),
    ] {
        assert_eq!(good("GPU_TIME_SLEEP", text).hold(None), Some(Hold::For(ns)));
    }
    for text in ["50", "us", "-5us", "0ns", "1.1s", "1h", "1e3us", "1.2.3us", "µ", "NaNus"] {
        bad("GPU_TIME_SLEEP", text);
    }
}

#[test]
fn the_bias_is_a_time_or_what_cupti_says_of_an_empty_kernel() {
    for (text, bias) in [
        ("2.2us", ConfiguredBias::Bias(2_200.0)),
        ("2205 ns", ConfiguredBias::Bias(2_205.0)),
        ("0ns", ConfiguredBias::Bias(0.0)),
        ("cupti:545ns", ConfiguredBias::KernelBase(545.0)),
        ("cupti: 0.8us", ConfiguredBias::KernelBase(800.0)),
    ] {
        assert_eq!(good("GPU_TIME_BIAS", text).bias(), Some(bias));
    }
    for text in ["2205", "-1ns", "2s", "1.1ms", "cupti", "cupti:", "cupti:545", "floor", "NaNns"] {
        assert_eq!(
            bad("GPU_TIME_BIAS", text),
            format!(
                "`GPU_TIME_BIAS`: `{text}` makes no sense; accepted are a time up to `1ms` to \
                 subtract, such as `2.2us`, and what CUPTI says of an empty kernel, such as \
                 `cupti:545ns`"
            )
        );
    }
}

#[test]
fn a_trace_is_bounded_where_there_is_one() {
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
                "`GPU_TIME_TRACE_LAST`: `{last}` makes no sense; accepted are whole numbers from \
                 `1` to `1000000`"
            )
        );
    }
    let (off, _) = config(&[("GPU_TIME_REPORT", "trace:t"), ("GPU_TIME", "off")]);
    assert_eq!(off.trace_last(), None);
}

/// A program may configure anything after it has changed its folder.
#[test]
fn reports_go_where_they_went() {
    let (before, _) = config(&[("GPU_TIME_REPORT", "json:a.json")]);
    let elsewhere = Config { targets: Vec::new(), ..before.clone() };
    assert_eq!(elsewhere.after(&before), before);
    let (other, _) = config(&[("GPU_TIME_REPORT", "json:b.json")]);
    assert_eq!(other.clone().after(&before), other);
}

#[test]
fn nonsense_is_named_with_what_is_accepted() {
    assert_eq!(
        bad("GPU_TIME", "yes"),
        "`GPU_TIME`: `yes` makes no sense; accepted are `on` and `off`"
    );
    assert_eq!(
        bad("GPU_TIME_WARMUP", "-1"),
        "`GPU_TIME_WARMUP`: `-1` makes no sense; accepted are whole numbers such as `10`"
    );
    assert_eq!(
        bad("GPU_TIME_COLD", "\u{1b}[31m"),
        "`GPU_TIME_COLD`: `\\u{1b}[31m` makes no sense; accepted are `off`, `clean` and `dirty`"
    );
    assert_eq!(
        bad("GPU_TIME_FILTER", "!"),
        "`GPU_TIME_FILTER`: `!` makes no sense; accepted are names with `*` for any text, such as \
         `app::*` and `!app::slow`"
    );
    for wrong in ["1.1", "-0.1", "101%", "NaN", "%", "one", "0.1 %%"] {
        assert!(bad("GPU_TIME_SAMPLE", wrong).contains("shares from `0` to `1`"));
    }
    for wrong in ["1", "0", "0%", "100%", "-1%", "NaN", "%"] {
        assert!(bad("GPU_TIME_BUDGET", wrong).contains("such as `1%` or `0.01`"), "{wrong}");
    }
    assert!(bad("GPU_TIME_REPORT", "jsn:x").contains("accepted are `table`"));
    #[cfg(not(feature = "html"))]
    assert!(bad("GPU_TIME_REPORT", "html:x").contains("needs gpu-time's feature `html`"));
    assert!(bad("GPU_TIME_REPORT", "json").contains("write `json:PATH`"));
    assert!(bad("GPU_TIME_REPORT", "csv:").contains("write `csv:PATH`"));
}

#[test]
fn what_is_no_text_is_named_too() {
    use std::os::unix::ffi::OsStringExt;
    let (config, complaints) = Config::from_vars(|name| {
        (name == "GPU_TIME").then(|| OsString::from_vec(vec![b'o', 0xff]))
    });
    assert_eq!(config, Config::default());
    assert_eq!(complaints, ["`GPU_TIME`: `o\u{fffd}` makes no sense; accepted are text in UTF-8"]);
}

#[test]
fn a_mistake_costs_nothing_else() {
    let (config, complaints) = config(&[
        ("GPU_TIME_WARMUP", "3"),
        ("GPU_TIME_COLD", "icy"),
        ("GPU_TIME_FILTER", "a::*,!,!a::b"),
        ("GPU_TIME_REPORT", "json:r.json,what"),
    ]);
    assert_eq!(complaints.len(), 3, "{complaints:?}");
    assert_eq!(config.warmup(0), 3);
    assert!(config.admits("a::c") && !config.admits("a::b") && !config.admits("c"));
    assert_eq!(config.targets(), [file(Format::Json, "r.json"), Target::TABLE]);
}

#[test]
fn reports_go_where_they_are_sent() {
    assert_eq!(good("GPU_TIME_REPORT", "none").targets(), []);
    assert_eq!(good("GPU_TIME_REPORT", "table").targets(), [Target::TABLE]);
    assert_eq!(
        good("GPU_TIME_REPORT", " table:t.txt, json:-,csv:c:/a b-%p.csv,").targets(),
        [
            file(Format::Table, "t.txt"),
            Target { format: Format::Json, sink: Sink::Stdout },
            file(Format::Csv, "c:/a b-%p.csv"),
        ]
    );
}

#[test]
fn a_comma_in_a_path_is_written_twice() {
    for (text, paths) in [
        ("json:a,,b", &["a,b"][..]),
        ("json:/com,,ma/r.json, json:c", &["/com,ma/r.json", "c"]),
        ("json:a,,,json:b,,,,c", &["a,", "b,,c"]),
    ] {
        let files: Vec<Target> = paths.iter().map(|path| file(Format::Json, path)).collect();
        assert_eq!(good("GPU_TIME_REPORT", text).targets(), files, "{text}");
    }
    let complaint = bad("GPU_TIME_REPORT", "ma.json");
    assert!(complaint.ends_with("and `none`, with a comma in a path as `,,`"), "{complaint}");
}

#[test]
fn a_sink_is_written_once() {
    for twice in [
        "json:a,json:a",
        "json:a,csv:a",
        "json:a,csv:./a",
        "json:a,csv:src/../a",
        "json:no/such/a,csv:no/./such/a",
        "table,json:-,table:-",
        "table,table",
        "trace:a,json:a",
    ] {
        let (config, complaints) = config(&[("GPU_TIME_REPORT", twice)]);
        assert_eq!(complaints.len(), 1, "{twice}: {complaints:?}");
        assert!(complaints[0].contains("goes where an earlier entry goes"));
        assert!(config.targets().contains(&Target::TABLE));
    }
    let (config, complaints) = config(&[("GPU_TIME_REPORT", "none,json:a")]);
    assert_eq!(complaints.len(), 1);
    assert_eq!(config.targets(), [file(Format::Json, "a"), Target::TABLE]);
    // One name in two folders.
    assert_eq!(good("GPU_TIME_REPORT", "json:a,csv:src/a").targets().len(), 2);
}

#[test]
fn a_link_is_the_file_that_it_leads_to() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let both = format!("json:{},csv:{}", file.display(), link.display());
    // What leads nowhere is replaced, and not followed.
    assert_eq!(good("GPU_TIME_REPORT", &both).targets().len(), 2);
    fs::write(&file, "").unwrap();
    let (config, complaints) = config(&[("GPU_TIME_REPORT", &both)]);
    assert!(complaints[0].contains("goes where an earlier entry goes"), "{complaints:?}");
    assert_eq!(config.targets().len(), 2, "the first, and the table: {:?}", config.targets());
}

#[test]
fn a_path_is_of_the_folder_that_the_program_was_in_when_it_was_read() {
    let config = good("GPU_TIME_REPORT", "json:sub/r-%p.json");
    let path = std::env::current_dir().unwrap().join("sub").join("r-%p.json");
    assert_eq!(config.targets(), [Target { format: Format::Json, sink: Sink::File(path) }]);
}
