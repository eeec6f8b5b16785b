//! Tests for the page's text. The tests that need a browser are in `browser`.

use std::collections::BTreeMap;

use super::*;
use crate::Site;
use crate::fixtures::{
    coverage, everything, gpu, kernels, off, on_host, only_functions, process, rated, row, site,
};
use crate::tree::fixtures::{node, of_sites, tree};
use crate::{Coverage, Detail, Device, Measure, Node, ScopeKind, Terminal};

mod bar;
#[cfg(feature = "browser-tests")]
mod browser;
mod rows;

/// Texts that would be harmful in a page, in an attribute, in a script or on a terminal.
const HOSTILE: [&str; 8] = [
    "<script>document.title = 'owned'</script>",
    "</script><script>document.title = 'owned'</script>",
    "\"><img src=x onerror=\"document.title = 'owned'\">",
    "<!--<script>",
    "'; document.title = 'owned'; '\\",
    "two\nlines\r\u{1b}[31m\u{7}\u{9b}",
    "\u{202e}desrever\u{2066}\u{2028}\u{0}",
    "&lt;b&gt;&amp;${1}{{1}}%p,\"\"",
];

/// Returns a snapshot in which every text is harmful.
fn hostile() -> Snapshot {
    let mut snapshot = everything();
    snapshot.sites.extend(kernels().sites);
    let mut texts = HOSTILE.into_iter().cycle().map(str::to_owned);
    let mut next = || texts.next().unwrap();
    let process = &mut snapshot.process;
    (process.name, process.started, process.version) = (next(), next(), next());
    (process.program_version, process.label) = (Some(next()), Some(next()));
    process.host = Some(next());
    process.warnings.extend(HOSTILE.map(str::to_owned));
    for device in &mut snapshot.devices {
        (device.name, device.driver) = (next(), Some(next()));
        (device.driver_release, device.uuid) = (Some(next()), Some(next()));
        device.warnings.push(next());
        device.event_bias_source = Some(next());
        device.throttle = Some([(next(), None)].into());
    }
    for site in &mut snapshot.sites {
        (site.file, site.options) = (next(), next());
        site.warnings.push(next());
        for series in &mut site.series {
            series.key = Some(next());
            if let Some(launch) = &mut series.launch {
                launch.name = next();
            }
            if let Some(times) = &mut series.kernel_times {
                times.kernels.iter_mut().for_each(|kernel| kernel.name = next());
                times.elsewhere.iter_mut().for_each(|work| work.name = next());
            }
        }
    }
    for (site, name) in snapshot.sites.iter_mut().zip(HOSTILE) {
        site.name = name.to_owned();
    }
    // As in every snapshot, what could forge output is escaped. The rest is for the page to escape.
    snapshot.check();
    snapshot.with_tree(HOSTILE.map(|name| Node { site: None, ..node(name, None, 1e3, 1e3) }).into())
}

/// Returns a report of nested functions with a call tree and phases.
fn nested() -> Snapshot {
    let mut snapshot = kernels();
    for (site, name) in snapshot.sites.iter_mut().zip(["pass", "norm", "attention"]) {
        site.name = name.to_owned();
    }
    snapshot.sites.truncate(3);
    // Phases found as much work outside of functions as inside.
    snapshot.process.wall_ns = 914_285;
    let nodes = of_sites(tree(), &snapshot.sites);
    snapshot.with_tree(nodes)
}

#[test]
fn hostile_texts_are_escaped() {
    let page = hostile().to_html();
    // The page's data and its script.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(page.matches("<!--").count(), 0);
    assert_eq!(page.matches("<img").count(), 0);
    assert!(page.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn data_is_the_report() {
    let snapshot = hostile();
    let page = snapshot.to_html();
    let (_, rest) = page.split_once("id=\"report\">").unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let mut data: serde_json::Value = serde_json::from_str(data).unwrap();
    let sites = data["report"]["sites"].as_array_mut().unwrap();
    for series in sites.iter_mut().filter_map(|site| site["series"].as_array_mut()).flatten() {
        let series = series.as_object_mut().unwrap();
        charts::OF_OPENED.iter().for_each(|name| _ = series.remove(*name));
    }
    let mut expected = snapshot;
    expected.tree.clear();
    // The page has these in another form.
    for series in expected.sites.iter_mut().flat_map(|site| &mut site.series) {
        (series.histogram, series.timeline) = (Default::default(), None);
        series.host_ns = None;
        if let Some(times) = &mut series.kernel_times {
            (times.busy_ns, times.self_busy_ns) = (None, None);
            (times.span_ns, times.gaps_ns) = (None, None);
            (times.kernels, times.elsewhere) = Default::default();
        }
    }
    let mut expected = serde_json::to_value(&expected).unwrap();
    for site in expected["sites"].as_array_mut().unwrap() {
        charts::strip(&mut site["series"]);
    }
    assert_eq!(data["report"], expected);
}

#[test]
fn page_of_many_functions_has_the_rows_with_the_longest_times() {
    let mut snapshot = everything();
    let site = snapshot.sites.iter().find(|site| site.series.len() == 1).unwrap().clone();
    snapshot.sites = (0..700)
        .map(|at| {
            let mut site = Site { name: format!("f{at}"), ..site.clone() };
            site.series[0].estimated_total_ns = Some(1e6 + f64::from(at));
            site
        })
        .collect();
    let page = snapshot.to_html();
    assert_eq!(page.matches("<tr class=\"row").count(), 600);
    assert!(page.contains("100 rows with "));
    let (_, data) = page.split_once("id=\"report\">").unwrap();
    let data: serde_json::Value =
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let names =
        data["report"]["sites"].as_array().unwrap().iter().map(|site| site["name"].as_str());
    let names: Vec<&str> = names.map(Option::unwrap).collect();
    assert_eq!((names.len(), names[0], names[599]), (600, "f100", "f699"));
    // The function with the longest total is first in the table and last in the data.
    let first = page.split_once("<tr class=\"row").unwrap().1;
    assert!(first.starts_with(" first\" id=\"first\" data-site=\"599\""), "{}", &first[..80]);
}

#[test]
fn loss_reasons_are_explained_by_the_data() {
    let page = everything().to_html();
    for reason in crate::Lost::ALL {
        let entry = format!("\"{}\":\"{}\"", reason.name(), reason.meaning());
        assert!(page.contains(&entry), "{entry}");
        assert!(!SCRIPT.contains(reason.cause()), "{entry}");
    }
}

#[test]
fn shared_names_have_places() {
    let mut snapshot = everything();
    for site in &mut snapshot.sites {
        site.name = "same".to_owned();
    }
    let text = text(&snapshot);
    for Site { file, line, .. } in snapshot.sites.iter().filter(|site| site.calls > 0) {
        assert!(text.contains(&format!("same ({file}:{line})")), "{text}");
    }
    assert!(!text.contains("same\n"), "{text}");
}

#[test]
fn page_loads_nothing() {
    let [with_script, without] = ["script-src 'unsafe-inline'; ", ""].map(|scripts| {
        format!(
            "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
             style-src 'unsafe-inline'; {scripts}img-src data:\""
        )
    });
    for page in [everything(), hostile(), off()].map(|snapshot| snapshot.to_html()) {
        assert!(page.contains(&with_script), "{page}");
    }
    assert!(page("title", "", None, &html! {}).contains(&without));
    let page = everything().to_html();
    // An XML namespace, which browsers do not load.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for load in ["http:", "https:", "url(", "@import", "import(", "fetch(", "src=", "<iframe"] {
        assert!(!page.contains(load), "{load}");
    }
    let links: Vec<&str> = page.split("href=").skip(1).collect();
    let [icon, row] = &links[..] else { panic!("{links:?}") };
    assert!(icon.starts_with("\"data:,\"") && row.starts_with("\"#first\""), "{links:?}");
}

/// Returns the text of the page, one line per cell.
fn text(snapshot: &Snapshot) -> String {
    let page = snapshot.to_html();
    let (_, body) = page.split_once("<body>").unwrap();
    let (body, _) = body.split_once("<script").unwrap();
    let mut text = String::new();
    for part in body.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
        if ["/td>", "/th>", "/tr>", "/li>", "/p>", "/dd>", "/h2>", "/summary>"]
            .iter()
            .any(|end| part.starts_with(end))
        {
            text.push('\n');
        }
    }
    text
}

#[test]
fn page_without_scripts() {
    insta::assert_snapshot!(text(&everything()));
}

#[test]
fn page_of_a_run_with_timing_off() {
    let text = text(&off());
    let why = off().process.off.unwrap();
    assert!(text.contains(&format!(": {why}\n")), "{text}");
    assert!(text.contains("app::saxpy"), "{text}");
    let empty = Snapshot::new(off().process, Vec::new(), Vec::new());
    assert!(self::text(&empty).contains("No function was "));
}

#[test]
fn functions_with_the_same_warning_share_a_line() {
    let mut snapshot = nested();
    for site in &mut snapshot.sites {
        site.warnings = vec!["the flush is not proved".to_owned()];
    }
    let text = text(&snapshot);
    assert!(text.contains("\n3 warnings\n"), "{text}");
    assert!(text.contains(", 2 more functions: "), "{text}");
}

#[test]
fn estimates_and_budget_are_shown() {
    let mut snapshot = everything();
    snapshot.process.budget =
        Some(crate::Budget { share: 0.01, cost_share: 0.008, ..crate::Budget::default() });
    let text = text(&snapshot);
    let estimate =
        |line: &str| line.starts_with(crate::marks::Mark::Estimate.text()) && line.contains(" ±");
    assert!(text.lines().any(estimate), "{text}");
    assert!(text.contains("\nbudget: timing took "), "{text}");
}

#[test]
fn gpu_time_without_a_gpu_is_left_out() {
    let mut snapshot = everything();
    snapshot.sites.retain_mut(|site| {
        site.series.retain(|series| series.device == "host");
        !site.series.is_empty()
    });
    let text = text(&snapshot);
    assert!(!text.contains("GPU busy in functions"), "{text}");
}

#[test]
fn program_on_the_host_has_no_tiles_of_the_gpu() {
    let text = text(&on_host());
    assert!(text.contains("\nhost samples100\nlost0\n"), "{text}");
    for tile in ["GPU busy", "GPU samples", "fed"] {
        assert!(!text.contains(&format!("\n{tile}")), "{text}");
    }
}

#[test]
fn page_without_calls_says_what_to_check() {
    let page = |sites| text(&Snapshot::new(process(None), vec![], sites));
    let never = page(vec![site("app::f", 1, ScopeKind::Body, [0, 0, 0], vec![])]);
    assert!(never.contains("called0 of 1\ncalls0\n"), "{never}");
    assert!(never.contains("was not called: "), "{never}");
    let empty = page(vec![]);
    assert!(!empty.contains("\ncalls") && !empty.contains("\nlost"), "{empty}");
    assert!(empty.contains("was timed: "), "{empty}");
}

#[test]
fn program_without_events_has_no_tiles_of_samples() {
    let mut snapshot = kernels();
    for site in &mut snapshot.sites {
        site.series.retain(|series| series.clock == crate::Clock::Kernels);
    }
    let text = text(&snapshot);
    assert!(text.contains("\nrecorded calls"), "{text}");
    assert!(!text.contains("\nGPU samples") && !text.contains("\nfed"), "{text}");
}

#[test]
fn host_samples_do_not_raise_the_fed_share() {
    let mut snapshot = everything();
    let fed = |snapshot: &Snapshot| {
        let text = text(snapshot);
        let tile = text.lines().find(|line| line.starts_with("fed")).unwrap();
        tile.to_owned()
    };
    let with_host = fed(&snapshot);
    for site in &mut snapshot.sites {
        site.series.retain(|series| series.device != "host");
    }
    assert_eq!(with_host, fed(&snapshot));
}

#[test]
fn gpu_time_leaves_out_barriers() {
    let mut snapshot = rated();
    snapshot.sites.retain(|site| ["app::sync", "app::host"].contains(&site.name.as_str()));
    let text = text(&snapshot);
    assert!(text.contains("\nhost samples") && !text.contains("\nGPU busy"), "{text}");
}

#[test]
fn merged_report_has_no_process_id() {
    let mut snapshot = everything();
    snapshot.process.merged = vec![off().process, off().process];
    snapshot.process.pid = 0;
    let text = text(&snapshot);
    assert!(text.contains("2 reports merged · ") && !text.contains("process 0"), "{text}");
}

#[test]
fn opened_calls_are_shown() {
    let text = text(&kernels());
    for part in [
        "\nrecorded calls27\n",
        "\nmodel::decode8 recorded, per call: 133 kernels, 1 copy\n",
        "\ncuda:0 kernels\n",
        "\napp::saxpy6 recorded, per call: 1 kernel\n",
        "\napp::biased on cuda:0: the kernel takes 21.10 µs by CUPTI and 24.00 µs by events",
        "14 × reduce",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(kernels().to_html().contains("14 × <code>reduce</code>"));
    assert!(!self::text(&everything()).contains("recorded"));
}

#[test]
fn gpu_time_of_nested_functions_is_counted_once() {
    let text = text(&nested());
    // The tree's self times add up to 320 µs, its inclusive times to 670 µs.
    assert!(text.contains("\nGPU busy in functions320.0 µs\n"), "{text}");
}

#[test]
fn tree_is_a_table_without_scripts() {
    let snapshot = nested();
    let text = text(&snapshot);
    let from = text.find("host/call").expect("a tree");
    let lines: Vec<&str> = text[from..].lines().filter(|line| !line.is_empty()).collect();
    let attention = lines.iter().position(|line| *line == "attention").unwrap();
    assert_eq!(lines[attention + 1..attention + 5], ["23.4%", "150.0", "200.0", "160"]);
    assert!(lines.iter().any(|line| line.starts_with("waits for ")), "{lines:?}");
    assert!(lines.contains(&"&lt;not annotated&gt;"), "{lines:?}");
    // One path for each caller.
    assert_eq!(lines.iter().filter(|line| **line == "norm").count(), 2);
    assert!(!self::text(&everything()).contains("Call tree"));
}

#[test]
fn page_has_the_advice_of_the_table() {
    for snapshot in [everything(), kernels(), on_host(), rated()] {
        let page = snapshot.to_html();
        let (_, advice) = page.split_once("<h2>What to do</h2>").unwrap();
        let (advice, _) = advice.split_once("</ul>").unwrap();
        let analysis = Analysis::of(&snapshot);
        let notes = notes::of(&analysis);
        let expected = notes.iter().filter(|note| note.severity == Severity::Advice).count();
        assert_eq!(advice.matches("<li>").count(), expected);
        assert!(!advice.contains('`'), "{advice}");
    }
}

/// Returns the left edge and the width of each bar of the call tree.
fn bars(snapshot: &Snapshot) -> Vec<[f64; 2]> {
    let page = snapshot.to_html();
    let rows = page.split("style=\"--x:").skip(1);
    let number = |text: &str| text.parse::<f64>().unwrap();
    let bar = |row: &str| {
        let (left, rest) = row.split_once(";--w:").unwrap();
        [number(left), number(rest.split_once(';').unwrap().0)]
    };
    rows.map(bar).collect()
}

#[test]
fn bars_of_the_tree_are_as_wide_as_their_times() {
    let mut snapshot = nested();
    snapshot.tree.retain(|node| node.name != Node::NOT_ANNOTATED);
    let seen = bars(&snapshot);
    // `pass` calls `attention`, which calls `norm`, and then `norm`.
    assert_eq!(seen, [[0.0, 1.0], [0.0, 0.625], [0.0, 0.15625], [0.625, 0.3125]]);
}

#[test]
fn paths_in_which_the_gpu_waits_are_underlined() {
    let path = |name, parent, waited_ns| {
        let mut node = node(name, parent, 1e3, 1e3);
        node.per_call.as_mut().unwrap().waited_ns = Some(waited_ns);
        node
    };
    let nodes = vec![
        path("forward", None, 1000.0),
        // Most of the waits above.
        path("block", Some(0), 900.0),
        path("attention", Some(1), 500.0),
        // Little of all waits.
        path("mlp", Some(1), 90.0),
    ];
    let snapshot = everything().with_tree(nodes);
    assert!(snapshot.tree.iter().all(|node| node.launch_bound));
    let page = snapshot.to_html();
    let rows = page.split("<tr").filter(|row| row.contains("--x:"));
    let (waiting, _): (Vec<&str>, Vec<_>) =
        rows.partition(|row| row.split_once('>').unwrap().0.contains("waits"));
    let name = |row: &&str| {
        let (_, row) = row.split_once("<th scope=\"row\">").unwrap();
        row.split_once('<').unwrap().0.to_owned()
    };
    assert_eq!(waiting.iter().map(name).collect::<Vec<_>>(), ["block", "attention"]);
}

#[test]
fn tree_of_the_page_is_bounded() {
    let nodes = (0..5000).map(|i| node("f", None, 0.0, f64::from(i + 1))).collect();
    let snapshot = everything().with_tree(nodes);
    let seen = bars(&snapshot);
    assert_eq!(seen.len(), 2000);
    assert!(seen.iter().all(|[_, width]| *width > 0.0));
    assert!(text(&snapshot).contains("3\u{202f}000 shorter paths "));
}

#[test]
fn lead_names_what_to_look_at_first() {
    let mut snapshot = nested();
    snapshot.process.wall_ns = process(None).wall_ns;
    snapshot.tree.retain(|node| node.source != crate::Source::Windows);
    let text = text(&snapshot);
    let expected = "Look at pass first: it waits for the CPU for 11.5% of the run. In each call, the GPU works ";
    assert!(text.contains(expected), "{text}");
    let with_host_time = |host_ns: f64| {
        let mut nodes = tree();
        for mean in nodes.iter_mut().filter_map(|node| node.per_call.as_mut()) {
            (mean.waited_ns, mean.host_ns) = (Some(0.0), Some(host_ns * mean.busy_ns));
        }
        let mut snapshot = nested();
        snapshot.process.wall_ns = 100_000_000;
        snapshot.devices[0].coverage = Some(only_functions(0.3, 0.0032));
        let nodes = of_sites(nodes, &snapshot.sites);
        self::text(&snapshot.with_tree(nodes))
    };
    let text = with_host_time(1.0);
    let expected = "Look at attention first: 46.9% of GPU time is its own.";
    assert!(text.contains(expected), "{text}");
    let text = with_host_time(100.0);
    let expected =
        "Look at pass first: each call takes 1.071 ms on the host for 258.2 µs of GPU work.";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn function_to_look_at_first_is_marked() {
    let page = nested().to_html();
    assert!(page.contains("Look at <a href=\"#first\"><b>pass</b></a> first"), "{page}");
    let [_, row] = &page.split("<tr class=\"row first\" id=\"first\"").collect::<Vec<_>>()[..]
    else {
        panic!("{page}")
    };
    assert!(row.split_once("<div class=\"name\">").unwrap().1.starts_with("pass</div>"), "{row}");
    let (_, path) = page.split_once(" first\" style=\"--x:").unwrap();
    assert!(path.split_once("<th scope=\"row\">").unwrap().1.starts_with("pass</th>"), "{path}");
    // A function without a row.
    let page = everything().with_tree(vec![node("f", None, 1e9, 1e9)]).to_html();
    assert!(page.contains("Look at <b>f</b> first") && !page.contains("href=\"#"), "{page}");
}

#[test]
fn lead_says_if_no_function_stands_out() {
    let nodes = (0..20).map(|i| node(&format!("f{i}"), None, 0.0, 1e3 - f64::from(i))).collect();
    let mut snapshot = everything().with_tree(nodes);
    snapshot.process.wall_ns = 20_000;
    let text = text(&snapshot);
    let expected =
        "Look at f0 first: it has the most GPU time of its own, 5.0%, but no function stands out.";
    assert!(text.contains(expected), "{text}");
}
