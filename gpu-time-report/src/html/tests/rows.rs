//! Tests of the rows of the table of functions: their order, their shares and their marks.

use super::*;
use crate::marks::Mark;
use crate::tree::fixtures::helpers;

#[test]
fn every_row_has_the_cells_of_the_header_in_any_window() {
    let page = everything().to_html();
    let (_, table) = page.split_once("class=\"rows\"").unwrap();
    let (table, _) = table.split_once("</table>").unwrap();
    let rows: Vec<&str> = table.split("<tr").skip(1).collect();
    // `app::decode` was called, and has no figures.
    assert!(rows.iter().any(|row| row.contains("app::<wbr>decode")));
    let wide = |row: &&str| row.matches(" wide").count() + row.matches("\"wide").count();
    assert!(rows.iter().all(|row| wide(row) == 1), "{table}");
}

#[test]
fn rates_have_columns_if_any_row_has_one() {
    let (with, without) = (text(&rated()), text(&everything()));
    assert!(with.contains("\nGB/s\nTFLOP/s\n") && with.contains("\n4\u{202f}000 80%\n"), "{with}");
    assert!(!without.contains("GB/s\n"), "{without}");
}

#[test]
fn rows_are_sorted_by_own_time() {
    let page = text(&everything());
    let (_, page) = page.split_once("\nFunctions\n").unwrap();
    let at = |name: &str| page.find(name).unwrap_or_else(|| panic!("{name}: {page}"));
    // 2.5, 0.26 and 0.08 ms on the GPU. Launches follow their function. The 100 ms on the host are no GPU time.
    assert!(at("app::train") < at("launch 0, line 40"));
    assert!(at("launch 0, line 40") < at("gemm 1, line 44"));
    assert!(at("gemm 1, line 44") < at("app::saxpy"));
    assert!(at("app::saxpy") < at("app::looped"));
    assert!(at("app::looped") < at("app::decode"));
}

/// The sum of a function's rows decides its place.
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
        ["mixed cold", "mixed as-found", "pair as-found", "pair cold", "largest as-found"];
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
fn function_that_only_calls_others_comes_after_them() {
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
    assert_eq!(names(&snapshot), ["pass", "attention", "norm", "load"]);
    let mut nodes = vec![node("pass", None, 3e8, 0.0)];
    nodes.extend(
        [(1, "norm", 1e8), (2, "attention", 2e8)]
            .map(|(site, name, ns)| Node { site: Some(site), ..node(name, Some(0), ns, ns) }),
    );
    let snapshot = snapshot.with_tree(nodes);
    assert_eq!(names(&snapshot), ["attention", "norm", "pass", "load"]);
    assert!(snapshot.to_html().contains("aria-sort=\"descending\">share "));
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
        snapshot.tree.iter().filter(|node| node.site.is_some()).map(|node| node.share).sum();
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
    let nodes = of_sites(nodes, &sites);
    let snapshot = Snapshot::new(process(None), vec![gpu], sites).with_tree(nodes);
    let [table, page, tree] = shares(&snapshot);
    assert_eq!(table, ["34.7%", "15.3%", "50.0%"]);
    assert_eq!(page, table);
    // The longest first.
    assert_eq!(tree, ["50.0%", "34.7%", "15.3%"]);
    assert!(snapshot.to_string().contains("\n<not annotated> "), "{snapshot}");
}

#[test]
fn helper_threads_have_a_row_without_calls() {
    let sites = vec![function("decode", 300)];
    let nodes = vec![node("decode", None, 4e8, 3e8), helpers(0, 1e8)];
    let snapshot = Snapshot::new(process(None), vec![gpu()], sites).with_tree(nodes);
    let [table, page, tree] = shares(&snapshot);
    assert_eq!([&table, &page, &tree], [&["75.0%", "25.0%"]; 3]);
    let table = snapshot.to_string();
    let row = table.lines().find(|line| line.starts_with("<helper threads> ")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["<helper", "threads>", "100.0", "25.0%"]
    );
}

#[test]
fn host_time_has_no_share_of_gpu_time() {
    let mut decode = function("decode", 300);
    let on_host =
        site("", 1, ScopeKind::Body, [0, 0, 1], vec![row("host", Measure::Span, [900_000_000])]);
    decode.series.extend(on_host.series);
    let sites = vec![decode, function("norm", 100)];
    let nodes = vec![node("decode", None, 3e8, 3e8), node("norm", None, 1e8, 1e8)];
    let nodes = of_sites(nodes, &sites);
    let snapshot = Snapshot::new(process(None), vec![gpu(), Device::host()], sites);
    for snapshot in [snapshot.clone(), snapshot.with_tree(nodes)] {
        let [table, page, _] = shares(&snapshot);
        assert_eq!((&table, &page), (&vec!["75.0%".to_owned(), "25.0%".to_owned()], &table));
    }
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
        row.lines().take(10).filter(|cell| cell.starts_with('≤')).count()
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
    assert!(all.contains(&format!("\n  {}: ", Mark::Uncertain.text())), "{all}");
}

/// One fed sample gives a median, but the total and the share are those of the starved ones.
#[test]
fn total_of_nearly_starved_samples_is_a_bound() {
    let mut site = function("decode", 300);
    let series = &mut site.series[0];
    (series.fed, series.starved) = (1, 1);
    let raw = series.raw_ns.as_mut().unwrap();
    raw.mean = raw.sum / 100.0;
    // The runtime marks the path.
    let by_events = node("decode", None, 3e8, 3e8);
    let by_events = Node { source: crate::Source::Events, upper_bound: true, ..by_events };
    let rows = Snapshot::new(process(None), vec![gpu()], vec![site]);
    for snapshot in [rows.clone(), rows.with_tree(vec![by_events])] {
        let table = snapshot.to_string();
        let row = table.lines().find(|line| line.starts_with("decode")).unwrap();
        assert_eq!(row.matches('≤').count(), 1, "{table}");
        assert!(row.ends_with(" 100.0%?"), "{table}");
        assert!(table.contains(" at most "), "{table}");
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
    assert!(!text(&snapshot).contains("CPU 8 recorded"));
    snapshot.sites[0].launch_bound = Some(true);
    let page = text(&snapshot);
    let chip = "waits for the CPU 8 recorded, per call: 133 kernels, 1 copy; the GPU works 0.258 of 1.055 ms; the host spends 1.071 ms";
    assert_eq!(page.matches(chip).count(), 1, "{page}");
    assert!(!page.contains("1.071 ms on 133 kernels"), "{page}");
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
    let marked = row.lines().take(10).filter(|cell| cell.starts_with('≤')).count();
    // The median and the total.
    assert_eq!(marked, 2, "{page}");
    let table = snapshot.to_string();
    let row = table.lines().find(|line| line.starts_with("decode")).unwrap();
    assert_eq!(row.matches('≤').count(), 2, "{table}");
}

/// As in the table, a time that the column's unit cannot show has a unit of its own.
#[test]
fn cell_in_another_unit_names_it() {
    let short = site(
        "short",
        1,
        ScopeKind::Body,
        [0, 0, 3],
        vec![row("host", Measure::Span, [70, 80, 90])],
    );
    let long = (0..9).map(|i| {
        let rows = vec![row("host", Measure::Span, [4_000_000 + i; 3])];
        site(&format!("long_{i}"), i, ScopeKind::Body, [0, 0, 3], rows)
    });
    let page = Snapshot::new(process(None), vec![], long.chain([short]).collect()).to_html();
    for time in ["80 ns", "70–90 ns", "240 ns"] {
        assert!(page.contains(&format!(">{time}<")), "{time}: {page}");
    }
    assert!(!page.contains(">0.000<"));
}
