//! Tests for JSON output from the fixture snapshots, and for its schema.

use crate::fixtures::{everything, kernels, off, process, rated};
use crate::*;

#[test]
fn json_of_everything() {
    insta::assert_snapshot!(everything().to_json());
}

#[test]
fn json_of_a_run_with_timing_off() {
    insta::assert_snapshot!(off().to_json());
}

#[test]
fn json_round_trips() {
    for snapshot in [everything(), kernels(), rated(), off()] {
        let json = snapshot.to_json();
        let read = Snapshot::from_json(json.as_bytes()).unwrap();
        assert_eq!(read, snapshot);
        assert_eq!(read.to_json(), json);
    }
}

#[test]
fn json_of_opened_calls() {
    let json = kernels().to_json();
    let (_, forked) = json.split_once("app::forked").unwrap();
    insta::assert_snapshot!(&forked[forked.find("\"host_ns\"").unwrap()..]);
    // The same members are there without recorded calls.
    let json = serde_json::from_str::<serde_json::Value>(&rated().to_json()).unwrap();
    let series = &json["sites"][0]["series"][0];
    assert_eq!((&series["opened"], &series["kernels"]), (&0.into(), &serde_json::json!([])));
    assert!(series["busy_ns"].is_null() && series["streams"].is_null());
}

/// Returns a snapshot with a value in every field.
fn in_full() -> Snapshot {
    let mut snapshot = everything();
    snapshot.process.budget = Some(Budget {
        share: 0.01,
        cost_share: 0.008,
        host_ns: 5_000_000,
        device_ns: 3_000_000,
        added_share: Some(0.004),
        added_error_share: Some(0.002),
    });
    snapshot.process.merged = vec![process(None)];
    for other in [rated(), kernels()] {
        snapshot.devices.extend(other.devices);
        snapshot.sites.extend(other.sites);
    }
    for device in &mut snapshot.devices {
        device.windows_from = Some(WindowsFrom { with: 1, of: 2 });
        device.shared = true;
        device.used_by = vec![0];
        if let Some(coverage) = &mut device.coverage {
            (coverage.covered_ns, coverage.not_annotated_error) = (1e9, Some(0.001));
        }
    }
    for series in snapshot.sites.iter_mut().flat_map(|site| &mut site.series) {
        series.net_histogram = series.histogram.less(2207.0);
        series.runs = series.run(0).into_iter().collect();
    }
    snapshot.with_tree(tree::fixtures::tree())
}

/// The schema included in the package.
const JSON_SCHEMA: &str = include_str!("../../schema/gpu-time-1.json");

fn violations(schema: &serde_json::Value, snapshot: &Snapshot) -> Vec<String> {
    let json = serde_json::from_str(&snapshot.to_json()).unwrap();
    let schema = jsonschema::draft202012::new(schema).unwrap();
    let at = |error: jsonschema::ValidationError| format!("{}: {error}", error.instance_path());
    schema.iter_errors(&json).map(at).collect()
}

#[test]
fn json_conforms_to_the_schema() {
    let schema = serde_json::from_str(JSON_SCHEMA).unwrap();
    assert!(jsonschema::draft202012::meta::is_valid(&schema));
    let by_events = everything().with_tree(tree::fixtures::by_events());
    for snapshot in [in_full(), by_events, everything(), kernels(), rated(), off()] {
        assert_eq!(violations(&schema, &snapshot), [""; 0]);
    }
    // Readers ignore unknown fields.
    let more = everything().to_json().replacen("\"pid\":", "\"new\": [], \"pid\":", 1);
    assert!(jsonschema::draft202012::is_valid(&schema, &serde_json::from_str(&more).unwrap()));
}

#[test]
fn schema_describes_exactly_the_fields() {
    let json =
        JSON_SCHEMA.replace("\"additionalProperties\": true", "\"additionalProperties\": false");
    assert_ne!(json, JSON_SCHEMA);
    let mut schema: serde_json::Value = serde_json::from_str(&json).unwrap();
    let mut objects = vec![&mut schema];
    let mut count = 0;
    while let Some(object) = objects.pop() {
        if let Some(properties) = object.get("properties").cloned() {
            let described = |field: &serde_json::Value| {
                field["description"].is_string() || field["$ref"].is_string()
            };
            for (name, field) in properties.as_object().unwrap() {
                assert!(described(field), "{name}");
                count += 1;
            }
            // Fields that are omitted when empty are required too, because this report has them
            // all.
            object["required"] = properties.as_object().unwrap().keys().cloned().collect();
        }
        match object {
            serde_json::Value::Object(fields) => objects.extend(fields.values_mut()),
            serde_json::Value::Array(items) => objects.extend(items),
            _ => {}
        }
    }
    assert!(count > 100, "{count}");
    // The process inside `merged` is not merged itself.
    let violations = violations(&schema, &in_full());
    assert_eq!(violations, ["/process/merged/0: \"merged\" is a required property"]);
}

#[test]
fn from_json_ignores_unknown_fields() {
    let json = everything().to_json();
    let more = json.replace("\"launches_seen\":", "\"new\": [{\"a\": null}], \"launches_seen\":");
    assert_ne!(more, json);
    assert_eq!(Snapshot::from_json(more.as_bytes()).unwrap(), everything());
}

#[test]
fn from_json_errors_name_the_cause() {
    let json = off().to_json();
    let with_schema = |schema: &str| json.replacen("gpu-time/1", schema, 1);
    for (text, message) in [
        (String::new(), "the JSON ends early: EOF while parsing a value at line 1 column 0"),
        (json[..json.len() / 2].to_owned(), "the JSON ends early: EOF while parsing "),
        ("{\"schema\" 1}".to_owned(), "not JSON: expected `:` at line 1 column 11"),
        ("[1, 2]".to_owned(), "not a report of gpu-time: it has no `schema` name"),
        ("[1, 2".to_owned(), "the JSON ends early: EOF while parsing a list at line 1 column 5"),
        ("{\"traceEvents\": []}".to_owned(), "not a report of gpu-time: it has no `schema` name"),
        ("{\"schema\": 1}".to_owned(), "not a report of gpu-time: it has no `schema` name"),
        (
            with_schema("gpu-time/2"),
            "unsupported schema \"gpu-time/2\": this version reads `gpu-time/1`",
        ),
        (with_schema("\\u001b[2J"), "unsupported schema \"\\u{1b}[2J\": this version reads"),
        (
            json.replace("\"calls\"", "\"cells\""),
            "invalid `gpu-time/1` report: missing field `calls` at line ",
        ),
    ] {
        let error = Snapshot::from_json(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert!(Snapshot::from_json(b"\xff").is_err());
}

#[test]
fn error_repeats_little_of_a_long_value() {
    let long = format!("\"calls\": \"{}\"", "a".repeat(50_000));
    let json = everything().to_json().replacen("\"calls\": ", &(long + ", \"old\": "), 1);
    let error = Snapshot::from_json(json.as_bytes()).unwrap_err().to_string();
    assert!(
        error.starts_with("invalid `gpu-time/1` report: invalid type: string \"aaa"),
        "{error}"
    );
    assert!(error.contains("aaa\", expected u64 at line ") && error.len() < 300, "{error}");
}

/// Characters that change a terminal, end a line or change the direction of text.
const HOSTILE: &str = "\u{9b}31m\u{85}\u{202e}\u{2028}\u{2066}\u{200f}\u{feff}\n\u{1b}[2J";

/// Returns the paths of all texts in the value, and of the names of members.
fn texts(value: &serde_json::Value, path: &str) -> Vec<String> {
    match value {
        serde_json::Value::String(_) => vec![path.to_owned()],
        serde_json::Value::Array(items) => {
            let items = items.iter().enumerate();
            items.flat_map(|(at, item)| texts(item, &format!("{path}/{at}"))).collect()
        }
        serde_json::Value::Object(members) => {
            members.iter().flat_map(|(name, item)| texts(item, &format!("{path}/{name}"))).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn hostile_texts_reach_no_output() {
    let mut json = serde_json::to_value(in_full()).unwrap();
    let read = |json: &serde_json::Value| Snapshot::from_json(json.to_string().as_bytes());
    let mut hostile = 0;
    for path in texts(&json, "") {
        let text = json.pointer(&path).unwrap().clone();
        *json.pointer_mut(&path).unwrap() = (text.as_str().unwrap().to_owned() + HOSTILE).into();
        match read(&json) {
            Ok(_) => hostile += 1,
            // Not a text, but one of several words.
            Err(_) => *json.pointer_mut(&path).unwrap() = text,
        }
    }
    assert!(hostile > 100, "{hostile}");
    for (list, field) in [("devices", "throttle"), ("tree", "self_ns_by_device")] {
        for owner in json[list].as_array_mut().unwrap() {
            let Some(map) = owner[field].as_object_mut() else { continue };
            let renamed =
                std::mem::take(map).into_iter().map(|(key, value)| (key + HOSTILE, value));
            *map = renamed.collect();
        }
    }
    let snapshot = read(&json).unwrap();
    let mut outputs = vec![snapshot.to_json(), snapshot.to_csv(), snapshot.to_folded()];
    for view in [View::Functions, View::Tree] {
        outputs.push(snapshot.to_table(Terminal { view, ..Terminal::default() }, Detail::All));
    }
    #[cfg(feature = "html")]
    outputs.push(snapshot.to_html());
    for output in outputs {
        let hidden = output.find(|c| c != '\n' && units::is_hidden(c));
        assert_eq!(hidden.map(|at| &output[at.saturating_sub(60)..]), None);
        assert!(output.contains("\\u{9b}"));
    }
}

#[test]
fn excess_is_refused_with_its_limit() {
    let text = |name: &str| off().to_json().replacen("quickstart", name, 1);
    let refused = |text: String| Snapshot::from_json(text.as_bytes()).unwrap_err().to_string();
    let longest = "é".repeat(32 << 10);
    let read = Snapshot::from_json(text(&longest).as_bytes()).unwrap();
    assert_eq!(read.process.name, longest);
    let line = refused(text(&(longest + "\\\"")));
    assert!(line.starts_with("too large: 65\u{202f}537 bytes "), "{line}");
    assert!(line.contains(" 65\u{202f}536 "), "{line}");
    let many = format!("{{\"schema\": \"gpu-time/1\", \"new\": [{}0]}}", "0,".repeat(1 << 24));
    let line = refused(many);
    assert!(line.starts_with("too large: 16\u{202f}777\u{202f}219 values"), "{line}");
    assert!(line.contains(" 16\u{202f}777\u{202f}216 "), "{line}");
}

/// The time to read it grows with the square of the levels.
#[test]
fn too_deep_tree_is_refused() {
    let read = |levels: usize| {
        let nodes = (0..levels).map(|at| tree::fixtures::node("f", at.checked_sub(1), 1.0, 1.0));
        let snapshot = everything().with_tree(nodes.collect());
        Snapshot::from_json(snapshot.to_json().as_bytes()).map(|read| read.tree.len())
    };
    let most = Node::MAX_LEVELS;
    assert_eq!(read(most).unwrap(), most);
    let error = read(most + 1).unwrap_err().to_string();
    assert!(error.contains("65 levels") && error.contains("at most 64"), "{error}");
}

/// The time to render it grows with the number of devices times that of paths.
#[test]
fn too_many_devices_are_refused() {
    let read = |count: usize| {
        let mut snapshot = off();
        snapshot.devices = vec![fixtures::gpu(); count];
        Snapshot::from_json(snapshot.to_json().as_bytes()).map(|read| read.devices.len())
    };
    assert_eq!(read(1_024).unwrap(), 1_024);
    let error = read(1_025).unwrap_err().to_string();
    assert_eq!(error, "too large: 1\u{202f}025 devices: at most 1\u{202f}024 are read");
}
