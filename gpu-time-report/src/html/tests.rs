//! Tests for the page's text. The tests that need a browser are in `browser`.

use std::collections::BTreeMap;

use super::*;
use crate::Site;
use crate::fixtures::{
    coverage, everything, gpu, kernels, off, on_host, process, rated, row, site,
};
use crate::tree::fixtures::{node, tree};
use crate::{Coverage, Detail, Device, Measure, Node, Overlap, ScopeKind, Terminal};

#[cfg(feature = "browser-tests")]
mod browser;

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
    snapshot.with_tree(HOSTILE.map(|name| Node { site: None, ..node(name, None, 1e3, 1e3) }).into())
}

/// Returns a report of nested functions with a call tree and windows.
fn nested() -> Snapshot {
    let mut snapshot = kernels();
    for (site, name) in snapshot.sites.iter_mut().zip(["pass", "norm", "attention"]) {
        site.name = name.to_owned();
    }
    snapshot.sites.truncate(3);
    // Windows found as much work outside of functions as inside.
    snapshot.process.wall_ns = 914_285;
    snapshot.with_tree(tree())
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
    let report = data["report"].to_string();
    let read = Snapshot::from_json(report.as_bytes()).unwrap();
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
    let expected = Snapshot::from_json(expected.to_string().as_bytes()).unwrap();
    assert_eq!(read, expected);
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
    assert!(page.contains("100 rows with shorter times are only in the JSON report."));
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
fn every_row_has_the_cells_of_the_header_in_any_window() {
    let page = everything().to_html();
    let (_, table) = page.split_once("class=\"rows\"").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let rows: Vec<&str> = table.split("<tr").skip(1).collect();
    // `app::decode` was called, and has no figures.
    assert!(rows.iter().any(|row| row.contains("app::<wbr>decode")));
    let wide = |row: &&str| row.matches(" wide").count() + row.matches("\"wide").count();
    assert!(rows.iter().all(|row| wide(row) == 3), "{table}");
}

#[test]
fn rates_have_columns_if_any_row_has_one() {
    let (with, without) = (text(&rated()), text(&everything()));
    assert!(with.contains("\nGB/s\nTFLOP/s\n") && with.contains("\n4000 80%\n"), "{with}");
    assert!(!without.contains("GB/s\n"), "{without}");
}

#[test]
fn page_of_a_run_with_timing_off() {
    let text = text(&off());
    assert!(text.contains("\nnothing was timed on a GPU: no CUDA driver was found\n"), "{text}");
    assert!(text.contains("app::saxpy"), "{text}");
    let empty = Snapshot::new(off().process, Vec::new(), Vec::new());
    assert!(self::text(&empty).contains("No function was called."));
}

#[test]
fn rows_are_sorted_by_total() {
    let page = text(&everything());
    let (_, page) = page.split_once("\nFunctions\n").unwrap();
    let at = |name: &str| page.find(name).unwrap_or_else(|| panic!("{name}: {page}"));
    // 100 ms on the host, and 2.5, 0.26 and 0.08 ms on the GPU. Launches follow their function.
    assert!(at("app::saxpy") < at("app::train"));
    assert!(at("app::train") < at("launch 0, line 40"));
    assert!(at("launch 0, line 40") < at("gemm 1, line 44"));
    assert!(at("gemm 1, line 44") < at("app::looped"));
    assert!(at("app::looped") < at("app::decode"));
}

/// The function's largest row decides its place, and not the sum of them.
#[test]
fn rows_of_a_function_stay_together() {
    let with_cold = |name, hot, cold| {
        let mut site = function(name, hot);
        let mut row = function(name, cold).series.remove(0);
        row.cache = crate::CacheState::Cold;
        site.series.push(row);
        site
    };
    let sites =
        vec![with_cold("pair", 30, 20), function("largest", 40), with_cold("mixed", 10, 50)];
    let snapshot = Snapshot::new(process(None), vec![gpu()], sites);
    let expected =
        ["mixed cold", "mixed as-found", "largest as-found", "pair as-found", "pair cold"];
    let table = snapshot.to_string();
    let rows = table.lines().skip_while(|line| !line.starts_with("function")).skip(1);
    let rows: Vec<String> = rows
        .take_while(|line| !line.is_empty())
        .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows, expected, "{table}");
    let page = snapshot.to_html();
    let rows = page.split("<tr class=\"row").skip(1).map(|row| {
        let between = |from: &str| row.split_once(from).unwrap().1.split_once('<').unwrap().0;
        let cache = between("<span class=\"chip ").split_once('>').unwrap().1;
        format!("{} {cache}", between("<div class=\"name\">"))
    });
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn rows_are_sorted_by_share_if_functions_call_others() {
    let names = |snapshot: &Snapshot| -> Vec<String> {
        let page = snapshot.to_html();
        let (_, rows) = page.split_once("class=\"rows\"").unwrap();
        let names = rows.split("<div class=\"name\">").skip(1);
        names.map(|name| name.split_once('<').unwrap().0.to_owned()).collect()
    };
    let sites = vec![function("pass", 300), function("norm", 100), function("attention", 200)];
    let mut on_host = function("load", 900);
    on_host.series[0].device = "host".to_owned();
    on_host.series[0].clock = crate::Clock::Host;
    let sites = [sites, vec![on_host]].concat();
    let snapshot = Snapshot::new(process(None), vec![gpu()], sites);
    assert_eq!(names(&snapshot), ["load", "pass", "attention", "norm"]);
    let mut nodes = vec![node("pass", None, 3e8, 0.0)];
    nodes.extend(
        [(1, "norm", 1e8), (2, "attention", 2e8)]
            .map(|(site, name, ns)| Node { site: Some(site), ..node(name, Some(0), ns, ns) }),
    );
    let snapshot = snapshot.with_tree(nodes);
    assert_eq!(names(&snapshot), ["attention", "norm", "load", "pass"]);
    assert!(snapshot.to_html().contains("aria-sort=\"descending\">share "));
}

#[test]
fn estimates_and_budget_are_shown() {
    let mut snapshot = everything();
    snapshot.process.budget =
        Some(crate::Budget { share: 0.01, cost_share: 0.008, host_ns: 0, device_ns: 0 });
    let text = text(&snapshot);
    let estimate = |line: &str| line.starts_with(crate::marks::ESTIMATE) && line.contains(" ±");
    assert!(text.lines().any(estimate), "{text}");
    assert!(text.contains("\nbudget: timing took "), "{text}");
}

#[test]
fn gpu_time_without_a_gpu_is_zero() {
    let mut snapshot = everything();
    snapshot.sites.retain_mut(|site| {
        site.series.retain(|series| series.device == "host");
        !site.series.is_empty()
    });
    let text = text(&snapshot);
    assert!(text.contains("GPU busy in functions0 ns\n"), "{text}");
}

#[test]
fn host_samples_are_not_fed() {
    let text = text(&on_host());
    assert!(text.contains("\nfed–\n"), "{text}");
    assert!(text.contains("\nGPU samples0\nhost samples100\n"), "{text}");
    assert!(text.contains("GPU busy in functions0 ns\n"), "{text}");
}

#[test]
fn program_without_events_has_no_tiles_of_samples() {
    let mut snapshot = kernels();
    for site in &mut snapshot.sites {
        site.series.retain(|series| series.clock == crate::Clock::Kernels);
    }
    let text = text(&snapshot);
    assert!(text.contains("\nopened calls"), "{text}");
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
    snapshot.sites.retain(|site| ["app::sync", "app::host"].contains(&site.name()));
    let text = text(&snapshot);
    assert!(text.contains("GPU busy in functions0 ns\n"), "{text}");
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
        "\nopened calls27\n",
        "\nmodel::decode8 opened, per call: 133 kernels\n",
        "\ncuda:0 kernels\n",
        "\napp::saxpy6 opened, per call: 1 kernel\n",
        "\napp::biased on cuda:0: the kernel takes 21.10 µs by CUPTI and 24.00 µs by events",
        "14 × reduce",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(kernels().to_html().contains("14 × <code>reduce</code>"));
    assert!(!self::text(&everything()).contains("opened"));
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
    let from = text.find("host per call").expect("a tree");
    let lines: Vec<&str> = text[from..].lines().filter(|line| !line.is_empty()).collect();
    let attention = lines.iter().position(|line| *line == "attention").unwrap();
    assert_eq!(lines[attention + 1..attention + 5], ["23.4%", "150.0", "200.0", "160"]);
    assert!(lines.iter().any(|line| line.starts_with("launch-bound: GPU busy ")), "{lines:?}");
    assert!(lines.contains(&"&lt;not annotated&gt;"), "{lines:?}");
    // One path for each caller.
    assert_eq!(lines.iter().filter(|line| **line == "norm").count(), 2);
    assert!(!self::text(&everything()).contains("Call tree"));
}

#[test]
fn shares_of_nested_functions_add_up() {
    let snapshot = nested();
    let page = snapshot.to_html();
    let (_, rows) = page.split_once("class=\"rows\"").unwrap();
    let shares = rows.split("class=\"n share\" data-value=\"").skip(1);
    let shares = shares.map(|cell| cell.split_once('"').unwrap().0.parse::<f64>().unwrap());
    let sum = shares.sum::<f64>();
    // The other half is not annotated, and has a row of its own.
    let functions: f64 =
        snapshot.tree.iter().filter(|node| node.site.is_some()).map(Node::share).sum();
    assert!((functions - 0.5).abs() < 1e-6 && (sum - 1.0).abs() < 1e-9, "{sum} {functions}");
}

/// Returns the shares in the table, on the page and in the tree, from the top.
fn shares(snapshot: &Snapshot) -> [Vec<String>; 3] {
    let (table, page, tree) =
        (snapshot.to_string(), snapshot.to_html(), snapshot.to_tree(Terminal::default()));
    let rows = table.lines().skip_while(|line| !line.starts_with("function"));
    let rows = rows.take_while(|line| !line.is_empty()).filter(|line| line.ends_with('%'));
    let (_, cells) = page.split_once("class=\"rows\"").unwrap();
    let cells = cells.split("class=\"n share\" data-value=\"").skip(1);
    let cell = |cell: &str| {
        let (_, text) = cell.split_once("</i>").unwrap();
        text.split_once('<').unwrap().0.to_owned()
    };
    let word = |word: Option<&str>| word.unwrap().to_owned();
    [
        rows.map(|line| word(line.split_whitespace().last())).collect(),
        cells.map(cell).collect(),
        tree.lines().skip(1).map(|line| word(line.split_whitespace().next())).collect(),
    ]
}

/// Returns a function that took this time on the GPU, in milliseconds.
fn function(name: &str, ms: u32) -> Site {
    let rows = vec![row("cuda:0", Measure::Span, [1_000_000 * ms + 2_207])];
    Site { name: name.to_owned(), ..site(name, ms, ScopeKind::Body, [0, 0, 1], rows) }
}

#[test]
fn table_page_and_tree_have_the_same_shares() {
    let gpu = Device { coverage: Some(coverage()), ..gpu() };
    let sites = vec![function("decode", 300), function("norm", 132)];
    let nodes = vec![node("decode", None, 3e8, 3e8), node("norm", None, 1.32e8, 1.32e8)];
    let snapshot = Snapshot::new(process(None), vec![gpu], sites).with_tree(nodes);
    let [table, page, tree] = shares(&snapshot);
    assert_eq!(table, ["34.7%", "15.3%", "50.0%"]);
    assert_eq!(page, table);
    // The longest first.
    assert_eq!(tree, ["50.0%", "34.7%", "15.3%"]);
    assert!(snapshot.to_string().contains("\n<not annotated> "), "{snapshot}");
}

#[test]
fn host_time_has_no_share_of_gpu_time() {
    let mut decode = function("decode", 300);
    let on_host =
        site("", 1, ScopeKind::Body, [0, 0, 1], vec![row("host", Measure::Span, [900_000_000])]);
    decode.series.extend(on_host.series);
    let sites = vec![decode, function("norm", 100)];
    let snapshot = Snapshot::new(process(None), vec![gpu(), Device::host()], sites);
    let nodes = vec![node("decode", None, 3e8, 3e8), node("norm", None, 1e8, 1e8)];
    for snapshot in [snapshot.clone(), snapshot.with_tree(nodes)] {
        let [table, page, _] = shares(&snapshot);
        assert_eq!((&table, &page), (&vec!["75.0%".to_owned(), "25.0%".to_owned()], &table));
    }
}

#[test]
fn bounds_in_the_bar_are_marked() {
    let nodes = [("decode", 9e8), ("norm", 2e8)]
        .map(|(name, ns)| Node { upper_bound: true, ..node(name, None, ns, ns) });
    let snapshot = Snapshot::new(process(None), vec![gpu()], vec![]).with_tree(nodes.into());
    let expected = ["decode ≤72.9%", "norm ≤16.2%", "idle or not annotated ≥10.9%"];
    assert_eq!(legends(&snapshot), [expected]);
    let page = snapshot.to_html();
    assert_eq!(page.matches("<i class=\"c0 bound\"").count(), 2);
    assert!(text(&snapshot).contains("GPU busy in functions≤1.100 s\n"));
}

/// Events include pauses of the GPU, of which windows know.
#[test]
fn busy_time_is_no_more_than_windows_found() {
    let bound = |name, ns| Node { upper_bound: true, ..node(name, None, ns, ns) };
    let gpu = Device { coverage: Some(Coverage { busy: 0.5, idle: 0.5, ..coverage() }), ..gpu() };
    let nodes = vec![bound("decode", 900e6), bound("norm", 200e6)];
    let snapshot = Snapshot::new(process(None), vec![gpu], vec![]).with_tree(nodes);
    // Half of the run, which takes 1.234 s.
    assert!(text(&snapshot).contains("GPU busy in functions≤617.0 ms\n"), "{}", text(&snapshot));
}

#[test]
fn known_time_divided_by_bounds_is_uncertain() {
    let nodes = |bounds: [bool; 2]| {
        let node = |((name, ns), upper_bound)| Node { upper_bound, ..node(name, None, ns, ns) };
        let times = [("decode", 300e6), ("norm", 100e6)].into_iter();
        times.zip(bounds).map(node).collect::<Vec<_>>()
    };
    let with_windows = Device { coverage: Some(coverage()), ..gpu() };
    let legends = |wall_ns, gpu: &Device, bounds| {
        let mut process = process(None);
        process.wall_ns = wall_ns;
        let snapshot = Snapshot::new(process, vec![gpu.clone()], vec![]).with_tree(nodes(bounds));
        legends(&snapshot).remove(0)
    };
    let run = 1_000_000_000;
    let rest = ["&lt;not annotated&gt; 35.0 ±0.6%", "idle 30.0 ±0.5%"];
    let some = legends(run, &with_windows, [true, false]);
    assert_eq!(some, ["decode 26.2%?", "norm 8.8%?", rest[0], rest[1]]);
    let all = legends(run, &with_windows, [true, true]);
    assert_eq!(all, ["annotated functions 35.0 ±0.4%", rest[0], rest[1]]);
    // Without windows, the times are bounds on their parts of the run unless they exceed it.
    let rest = "idle or not annotated ≥60.0%";
    assert_eq!(legends(run, &gpu(), [true, false]), ["decode ≤30.0%", "norm 10.0%", rest]);
    let short = 200_000_000;
    assert_eq!(legends(short, &gpu(), [true, false]), ["decode 75.0%?", "norm 25.0%?"]);
    assert_eq!(legends(short, &gpu(), [true, true]), ["annotated functions ≤100.0%"]);
}

#[test]
fn rows_without_fed_samples_are_bounds() {
    let starved = |mut site: Site| {
        site.series[0].upper_bound = true;
        site
    };
    let sites = vec![starved(function("decode", 300)), function("norm", 100)];
    let snapshot = Snapshot::new(process(None), vec![gpu()], sites);
    let page = text(&snapshot);
    let cells = |name: &str| {
        let (_, row) = page.split_once(&format!("\n{name}\n")).unwrap();
        row.lines().take(12).filter(|cell| cell.starts_with('≤')).count()
    };
    // The median and the total.
    assert_eq!([cells("decode"), cells("norm")], [2, 0], "{page}");
    let table = snapshot.to_string();
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).unwrap();
    assert_eq!(row("decode").matches('≤').count(), 2, "{table}");
    assert_eq!(row("norm").matches('≤').count(), 0, "{table}");
    // A wait of `decode` would lower the share of `norm`.
    assert!(row("decode").ends_with(" 75.0%?") && row("norm").ends_with(" 25.0%?"), "{table}");
    assert!(page.contains("75.0%?") && page.contains("25.0%?"), "{page}");
    let all = snapshot.to_table(Terminal::default(), Detail::All);
    assert!(all.contains("  ?: share that may be too large or too small, "), "{all}");
}

/// One fed sample gives a median, but the total and the share are those of the starved ones.
#[test]
fn total_of_nearly_starved_samples_is_a_bound() {
    let mut site = function("decode", 300);
    let series = &mut site.series[0];
    (series.fed, series.starved) = (1, 1);
    let raw = series.raw_ns.as_mut().unwrap();
    raw.mean = raw.sum / 100.0;
    let by_events = Node { source: crate::Source::Events, ..node("decode", None, 3e8, 3e8) };
    let rows = Snapshot::new(process(None), vec![gpu()], vec![site]);
    for snapshot in [rows.clone(), rows.with_tree(vec![by_events])] {
        let table = snapshot.to_string();
        let row = table.lines().find(|line| line.starts_with("decode")).unwrap();
        assert_eq!(row.matches('≤').count(), 1, "{table}");
        assert!(row.ends_with(" 100.0%?"), "{table}");
        assert!(table.contains("Timed functions account for at most "), "{table}");
        let page = text(&snapshot);
        assert!(page.contains("GPU busy in functions≤") && page.contains("100.0%?"), "{page}");
        let json = snapshot.to_json();
        assert_eq!(Snapshot::from_json(json.as_bytes()).unwrap().to_string(), table);
    }
}

#[test]
fn rows_of_bounds_have_no_shares() {
    let mut sites = vec![function("decode", 300), function("norm", 100)];
    sites.iter_mut().for_each(|site| site.series[0].upper_bound = true);
    let snapshot = Snapshot::new(process(None), vec![gpu()], sites);
    let table = snapshot.to_table(Terminal::default(), Detail::All);
    assert!(!table.contains("share"), "{table}");
    let page = snapshot.to_html();
    let (_, rows) = page.split_once("class=\"rows\"").unwrap();
    assert!(!rows.split_once("</table>").unwrap().0.contains("share"), "{rows}");
}

#[test]
fn rows_of_launch_bound_functions_say_so() {
    let mut snapshot = kernels();
    assert!(!text(&snapshot).contains("launch-bound 8 opened"));
    snapshot.sites[0].launch_bound = Some(true);
    let page = text(&snapshot);
    let chip = "launch-bound 8 opened, per call: 133 kernels; GPU busy 0.258 of 1.055 ms; the host took 1.071 ms \
                for 133 kernels";
    assert_eq!(page.matches(chip).count(), 1, "{page}");
}

/// Events timed some calls of the function, but the tree has the opened ones alone.
#[test]
fn share_by_opened_calls_is_no_bound() {
    let mut sites = vec![function("decode", 300), function("norm", 100)];
    sites[0].series[0].upper_bound = true;
    let mut nodes = vec![node("decode", None, 3e6, 3e6), node("norm", None, 1e6, 1e6)];
    nodes[1].site = Some(1);
    let snapshot = Snapshot::new(process(None), vec![gpu()], sites).with_tree(nodes);
    let page = text(&snapshot);
    let (_, row) = page.split_once("\nFunctions\n").unwrap();
    let (_, row) = row.split_once("\ndecode\n").unwrap();
    let marked = row.lines().take(12).filter(|cell| cell.starts_with('≤')).count();
    // The median and the total.
    assert_eq!(marked, 2, "{page}");
    let table = snapshot.to_string();
    let row = table.lines().find(|line| line.starts_with("decode")).unwrap();
    assert_eq!(row.matches('≤').count(), 2, "{table}");
}

#[test]
fn page_has_the_advice_of_the_table() {
    for snapshot in [everything(), kernels(), on_host(), rated()] {
        let page = snapshot.to_html();
        let (_, advice) = page.split_once("<h2>What to do</h2>").unwrap();
        let (advice, _) = advice.split_once("</ul>").unwrap();
        assert_eq!(advice.matches("<li>").count(), advice::of(&snapshot).len());
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
    assert!(snapshot.tree.iter().all(Node::launch_bound));
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
    assert!(text(&snapshot).contains("3\u{202f}000 shorter paths are only in the JSON report."));
}

/// Returns the names and the shares in the legends of the bars of device time.
fn legends(snapshot: &Snapshot) -> Vec<Vec<String>> {
    let page = snapshot.to_html();
    let lists = page.split("class=\"legend\">").skip(1);
    let text = |item: &str| {
        let (_, item) = item.split_once("\">").unwrap();
        let item = item.replace("</span> <b>", " ").replace("<span class=\"error\">", "");
        item.replace("</span>%", "%").split_once('<').unwrap().0.to_owned()
    };
    let items = |list: &str| {
        let (list, _) = list.split_once("</ul>").unwrap();
        list.split("class=\"name\" title=\"").skip(1).map(text).collect()
    };
    lists.map(items).collect()
}

#[test]
fn device_time_adds_up() {
    // Windows found the device busy for 70 % of the time, and functions for 35 %.
    let functions = ["attention 16.4%", "norm 16.4%", "pass 2.2%"];
    let rest = ["&lt;not annotated&gt; 35.0 ±0.5%", "idle 30.0 ±0.5%"];
    assert_eq!(legends(&nested())[0], [&functions[..], &rest].concat());
}

#[test]
fn device_time_has_the_exact_times_of_functions() {
    let nodes =
        [("decode", 300e6), ("norm", 100e6)].map(|(name, ns)| node(name, None, ns, ns)).to_vec();
    let bar = |coverage| {
        let mut process = process(None);
        process.wall_ns = 1_000_000_000;
        let gpu = Device { coverage: Some(coverage), ..gpu() };
        legends(&Snapshot::new(process, vec![gpu], vec![]).with_tree(nodes.clone())).remove(0)
    };
    // The rest differs from what windows found, since they found functions at work for 35 %.
    let expected =
        ["decode 30.0%", "norm 10.0%", "&lt;not annotated&gt; 30.0 ±0.5%", "idle 30.0 ±0.5%"];
    assert_eq!(bar(coverage()), expected);
    assert_eq!(bar(Coverage { attributed: 0.0, ..coverage() }), expected);
    let few = Coverage { busy_error: None, idle_error: None, ..coverage() };
    assert_eq!(bar(few)[2..], ["&lt;not annotated&gt; ~30.0%", "idle ~30.0%"]);
    let idler = Coverage { busy: 0.3, idle: 0.7, ..coverage() };
    assert_eq!(bar(idler), ["decode 30.0%", "norm 10.0%", "idle ~60.0%"]);
}

#[test]
fn device_time_without_windows_leaves_the_rest_open() {
    let mut snapshot = nested();
    snapshot.process.wall_ns = 640_000;
    snapshot.devices[0].coverage = None;
    let mut snapshot = snapshot.with_tree(tree());
    let expected = ["attention 23.4%", "norm 23.4%", "pass 3.1%", "idle or not annotated 50.0%"];
    assert_eq!(legends(&snapshot), [expected]);
    assert!(text(&snapshot).contains("Set GPU_TIME_WINDOWS=20ms/200ms to tell idle time"));
    snapshot.process.wall_ns = 60_000_000_000;
    assert!(text(&snapshot).contains("Set GPU_TIME_WINDOWS=20ms/10s to tell idle time"));
}

#[test]
fn device_time_is_that_of_each_device() {
    let mut snapshot = nested();
    snapshot.devices.push(Device { id: "cuda:1".to_owned(), ..gpu() });
    for node in &mut snapshot.tree {
        let device = if node.name == "norm" { "cuda:1" } else { "cuda:0" };
        node.self_ns_by_device = BTreeMap::from([(device.to_owned(), node.self_ns)]);
    }
    let legends = legends(&snapshot);
    let has = |list: &[String], name: &str| list.iter().any(|item| item.starts_with(name));
    assert_eq!(legends.len(), 2);
    assert!(!has(&legends[0], "norm") && has(&legends[0], "pass"), "{legends:?}");
    assert!(has(&legends[1], "norm") && !has(&legends[1], "pass"), "{legends:?}");
    // Nested functions are counted once.
    assert_eq!(legends[0][..2], ["attention 16.4%", "pass 2.2%"]);
}

#[test]
fn many_devices_share_a_legend() {
    let mut snapshot = nested();
    let first = snapshot.devices[0].clone();
    let more = (1..4).map(|i| Device { id: format!("cuda:{i}"), ..first.clone() });
    snapshot.devices.extend(more);
    for (at, node) in snapshot.tree.iter_mut().enumerate() {
        node.self_ns_by_device = BTreeMap::from([(format!("cuda:{}", at % 4), node.self_ns)]);
    }
    let page = snapshot.to_html();
    assert_eq!(page.matches("class=\"time-bar\"").count(), 4);
    let names = ["attention ", "norm ", "pass ", "&lt;not annotated&gt; ", "idle "];
    assert_eq!(legends(&snapshot), [names]);
    let text = text(&snapshot);
    assert_eq!(text.matches("4 GPUs: NVIDIA").count(), 1, "{text}");
    // The details of each.
    assert_eq!(text.matches("Outside of annotated functions:").count(), 4);
    assert_eq!(text.matches("busy 70.0 ±0.5%").count(), 4);
}

#[test]
fn device_time_counts_overlapping_work_once() {
    let mut snapshot = nested();
    snapshot.devices[0].coverage = None;
    let mut snapshot = snapshot.with_tree(tree());
    // The functions' own times add up to 320 µs, but the device was busy for only 240 µs.
    snapshot.process.wall_ns = 480_000;
    snapshot.devices[0].overlap = Some(Overlap { ns: 80_000.0, partial: false });
    let expected = ["attention 23.4%", "norm 23.4%", "pass 3.1%", "idle or not annotated 50.0%"];
    assert_eq!(legends(&snapshot), [expected]);
    let lead = "Timed functions account for 50.0% of the run.";
    assert!(text(&snapshot).contains(lead));
    snapshot.devices[0].overlap = Some(Overlap { ns: 80_000.0, partial: true });
    assert!(text(&snapshot).contains("Timed functions account for at most 50.0% of the run."));
    let expected =
        ["attention ≤23.4%", "norm ≤23.4%", "pass ≤3.1%", "idle or not annotated ≥50.0%"];
    assert_eq!(legends(&snapshot), [expected]);
    // Own times on the host do not count as GPU time.
    snapshot.devices.push(Device::host());
    let text = text(&snapshot);
    assert!(text.contains("≤240.0 µs"), "{text}");
}

#[test]
fn lead_names_what_to_look_at_first() {
    let mut snapshot = nested();
    snapshot.process.wall_ns = process(None).wall_ns;
    let text = text(&snapshot);
    let expected = "The GPU was idle 30.0 ±0.5% of the time. Look at pass first: it is launch-bound (the GPU waited for the CPU for 11.5% of the run). On average, GPU busy ";
    assert!(text.contains(expected), "{text}");
    let with_host_time = |host_ns: f64| {
        let mut nodes = tree();
        for mean in nodes.iter_mut().filter_map(|node| node.per_call.as_mut()) {
            (mean.waited_ns, mean.host_ns) = (Some(0.0), Some(host_ns * mean.busy_ns));
        }
        let mut snapshot = nested();
        snapshot.process.wall_ns = 100_000_000;
        snapshot.devices[0].coverage.as_mut().unwrap().attributed = 0.7;
        self::text(&snapshot.with_tree(nodes))
    };
    let text = with_host_time(1.0);
    let expected = "Look at attention first: 46.9% of GPU time is its own.";
    assert!(text.contains(expected), "{text}");
    let text = with_host_time(100.0);
    let expected =
        "Look at pass first: each call takes 200.0 µs on the host for 2.000 µs of GPU work.";
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
