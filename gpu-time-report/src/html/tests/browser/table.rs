//! Tests of the table of functions: sorting, filtering, and rows that open.

use super::*;

#[test]
fn rows_open_with_charts() {
    let seen = ask(
        &everything(),
        &format!(
            r#"{OPEN}
            const titles = (detail) => [...detail.querySelectorAll("h3")].map((h3) => h3.textContent);
            return {{
                rows: all(".row").length,
                details: all(".detail").map(titles),
                empty: all(".pane svg").filter((svg) => svg.childElementCount < 5).length,
                charts: all(".pane svg").length,
                expanded: all(".row button[aria-expanded=true]").length,
                overflow: document.scrollingElement.scrollWidth > innerWidth,
            }}"#
        ),
    );
    let sites = everything().sites;
    let series = sites.iter().map(|site| site.series.len()).sum::<usize>();
    // `app::decode` and `app::filtered` have rows without figures.
    assert_eq!(seen["rows"], series + 2);
    assert_eq!(seen["expanded"], series + 2);
    assert_eq!((&seen["empty"], &seen["charts"]), (&0.into(), &(2 * series).into()));
    assert_eq!(seen["overflow"], false);
    let details: Vec<Vec<String>> = serde_json::from_value(seen["details"].clone()).unwrap();
    let whole = ["Distribution", "Over the run", "Launches", "Figures", "Samples", "About"];
    assert!(details.contains(&whole.map(str::to_owned).into()), "{details:?}");
}

#[test]
fn cache_states_share_a_chart() {
    let mut snapshot = everything();
    let saxpy = snapshot.sites.iter_mut().find(|site| site.name == "app::saxpy").unwrap();
    let mut cold = saxpy.series[0].clone();
    cold.cache = crate::CacheState::Cold;
    saxpy.series.push(cold);
    let seen = ask(
        &snapshot,
        &format!(
            r#"{OPEN}
            return all(".pane").filter((pane) => pane.querySelector("h3").textContent === "Cache states")
                .map((pane) => [...pane.querySelectorAll("text")].map((text) => text.textContent));"#
        ),
    );
    let seen: Vec<Vec<String>> = serde_json::from_value(seen).unwrap();
    assert_eq!(seen.len(), 2);
    for texts in seen {
        let has = |begin: &str| texts.iter().any(|text| text.starts_with(begin));
        assert!(has("as-found: ") && has("cold: "), "{texts:?}");
    }
}

/// Approximates the order used by browsers: case is ignored, digits come before letters, and
/// everything else comes first.
fn collated(text: &str) -> String {
    text.to_lowercase().replace(|c: char| !c.is_alphanumeric(), " ")
}

#[test]
fn columns_sort_in_both_directions() {
    let seen = ask(
        &everything(),
        r#"
        const all = (selector) => [...document.querySelectorAll(selector)];
        const sorted = [];
        for (const [column, head] of all(".rows thead th").entries()) {
            const button = head.querySelector("button");
            if (!button) continue;
            for (let clicks = 0; clicks < 2; clicks++) {
                button.click();
                const numeric = head.classList.contains("n");
                const value = (row) =>
                    numeric ? row.cells[column].dataset.value : row.cells[column].textContent;
                const groups = all(".rows tbody").map((group) =>
                    [group.rows[0].dataset.site, [...group.rows].map(value).find(Boolean) ?? ""]);
                sorted.push({
                    title: head.textContent, order: head.getAttribute("aria-sort"), numeric, groups,
                });
            }
        }
        return sorted;"#,
    );
    let sorted = seen.as_array().unwrap();
    assert_eq!(sorted.len(), 2 * 9);
    for column in sorted {
        let groups: Vec<(&str, &str)> = column["groups"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|group| group[0].as_str().zip(group[1].as_str()))
            .collect();
        let is_ascending = column["order"] == "ascending";
        let in_order = |a: &str, b: &str| {
            let (a, b) = if is_ascending { (a, b) } else { (b, a) };
            match (a.parse::<f64>(), b.parse::<f64>()) {
                (Ok(a), Ok(b)) => a <= b,
                _ => collated(a) <= collated(b),
            }
        };
        // Those without a value come last in either direction.
        let are_sorted = |values: &[&str]| {
            let known = values.iter().take_while(|value| !value.is_empty()).count();
            let (known, unknown) = values.split_at(known);
            known.windows(2).all(|pair| in_order(pair[0], pair[1]))
                && unknown.iter().all(|value| value.is_empty())
        };
        // The rows of a function stay together, and the first of them decides its place.
        let functions: Vec<_> = groups.chunk_by(|one, other| one.0 == other.0).collect();
        let sites: BTreeSet<&str> = groups.iter().map(|(site, _)| *site).collect();
        assert_eq!(functions.len(), sites.len(), "{column}");
        for rows in &functions {
            let values: Vec<&str> = rows.iter().map(|(_, value)| *value).collect();
            assert!(are_sorted(&values), "{column}");
        }
        let firsts: Vec<&str> = functions.iter().map(|rows| rows[0].1).collect();
        assert!(are_sorted(&firsts), "{column}");
    }
    let of = |title: &str| {
        let column =
            sorted.iter().find(|column| column["title"].as_str().unwrap().starts_with(title));
        column.map(|column| column["order"].as_str().unwrap())
    };
    // The first click sorts names from A, and figures from the largest.
    assert_eq!([of("function"), of("median")], [Some("ascending"), Some("descending")]);
}

#[test]
fn filter_matches_names_launches_and_devices() {
    let seen = ask(
        &everything(),
        r#"
        const search = document.querySelector("[type=search]");
        const shown = (text) => {
            search.value = text;
            search.dispatchEvent(new Event("input"));
            const groups = [...document.querySelectorAll(".rows tbody")].filter((group) => !group.hidden);
            return groups.map((group) => group.querySelector(".name").textContent);
        };
        return [shown("train"), shown("APP:: gemm"), shown("host"), shown("nothing"), shown("").length];"#,
    );
    assert_eq!(seen, serde_json::json!([["app::train"], ["app::train"], ["app::saxpy"], [], 9]));
}

#[test]
fn link_at_the_top_opens_the_row() {
    let seen = in_frame(
        &nested(),
        LOW,
        r#"
        const search = page.querySelector("[type=search]");
        search.value = "nothing";
        search.dispatchEvent(new page.defaultView.Event("input"));
        const row = page.getElementById("first");
        const look = async () => {
            page.querySelector(".lead a").click();
            await new Promise((resolve) => setTimeout(resolve, 300));
            const { top } = row.getBoundingClientRect();
            const header = page.querySelector(".rows thead th").getBoundingClientRect().bottom;
            return [row.nextElementSibling?.className, top >= header - 1 && top < innerHeight];
        };
        return [await look(), await look()];"#,
    );
    assert_eq!(seen, serde_json::json!([["detail", true], ["detail", true]]));
}

#[test]
fn filter_matches_places() {
    let mut snapshot = everything();
    for site in &mut snapshot.sites {
        site.name = "same".to_owned();
    }
    let Site { file, line, .. } = snapshot.sites.iter().find(|site| site.calls > 0).unwrap();
    let name = format!("same ({file}:{line})");
    let seen = ask(
        &snapshot,
        &format!(
            r#"
        const search = document.querySelector("[type=search]");
        search.value = "{name}";
        search.dispatchEvent(new Event("input"));
        const groups = [...document.querySelectorAll(".rows tbody")].filter((group) => !group.hidden);
        return [...new Set(groups.map((group) => group.querySelector(".name").textContent))];"#
        ),
    );
    assert_eq!(seen, serde_json::json!([name]));
}

#[test]
fn timeline_shows_gaps_and_marks_what_it_cuts() {
    let mut snapshot = kernels();
    snapshot.sites.truncate(1);
    let series = &mut snapshot.sites[0].series[0];
    let mut course = crate::Course::new();
    let times = (0..60).filter(|slot| !(20..40).contains(slot));
    for slot in times {
        course.record(slot * 1_000_000_000, if slot == 50 { 9e6 } else { 1e4 + slot as f64 });
        course.record(slot * 1_000_000_000, 1e4);
    }
    series.timeline = course.timeline(0);
    let seen = ask(
        &snapshot,
        &format!(
            r#"{OPEN}
            const pane = all(".pane").find((pane) => pane.querySelector("h3").textContent === "Over the run");
            return {{
                lines: pane.querySelectorAll("polyline").length,
                cuts: pane.querySelectorAll(".cut").length,
                note: pane.querySelector("header span").textContent,
            }}"#
        ),
    );
    assert_eq!((&seen["lines"], &seen["cuts"]), (&2.into(), &1.into()));
    assert_eq!(seen["note"], "mean, min to max · ▲ up to 9.000 ms");
}

#[test]
fn figures_end_where_their_headers_end() {
    let mut snapshot = nested();
    // Functions that were called, and have no figures.
    snapshot.sites.extend(everything().sites.into_iter().filter(|site| site.series.is_empty()));
    for window in [DESKTOP, LAPTOP] {
        let seen = chromium::ask(
            &snapshot.to_html(),
            window,
            r#"
            const right = (node) => {
                const range = document.createRange();
                range.selectNodeContents(node);
                return range.getBoundingClientRect().right;
            };
            const cells = (row) => [...row.cells].filter((cell) => cell.checkVisibility());
            const [head, ...rows] = [...document.querySelectorAll(".rows thead tr, .row")].map(cells);
            const offset = (cell, i) =>
                head[i].classList.contains("n") && cell.textContent ? [right(head[i]) - right(cell)] : [];
            return {
                cells: [head, ...rows].map((cells) => cells.length),
                offsets: rows.flatMap((row) => row.flatMap(offset)),
            };"#,
        );
        let [cells, offsets] = ["cells", "offsets"]
            .map(|what| -> Vec<f64> { serde_json::from_value(seen.answer[what].clone()).unwrap() });
        assert!(cells.len() >= 5 && cells.iter().all(|count| *count == cells[0]), "{cells:?}");
        assert!(offsets.len() >= 10 && offsets.iter().all(|by| by.abs() < 1.5), "{offsets:?}");
    }
}

#[test]
fn reports_without_histograms_are_drawn() {
    let mut old = everything();
    for series in old.sites.iter_mut().flat_map(|site| &mut site.series) {
        (series.histogram, series.timeline) = (Default::default(), None);
    }
    let charts = format!("{OPEN} return all('.pane').length > 0 && all('.pane.half').length;");
    assert_eq!(ask(&old, &charts), 0);
}

#[test]
fn opened_rows_list_every_kernel() {
    let snapshot = kernels();
    let seen = ask(
        &snapshot,
        &format!(
            r#"{OPEN}
            const within = (pane, selector) => [...pane.querySelectorAll(selector)].map((node) => node.textContent);
            return {{
                panes: all(".detail").map((detail) => within(detail, "h3")),
                kernels: all(".pane:has(.kernels)").map((pane) =>
                    [...pane.querySelectorAll("code")].map((code) => [code.title || code.textContent, code.textContent])),
                first: within(document.querySelector(".kernels tr:nth-child(2)"), "td"),
                calls: all(".pane").filter((pane) => within(pane, "h3")[0] === "Recorded calls")
                    .map((pane) => within(pane, "header span")[0]),
                overflow: document.scrollingElement.scrollWidth > innerWidth,
            }}"#
        ),
    );
    let panes: Vec<Vec<String>> = serde_json::from_value(seen["panes"].clone()).unwrap();
    let has = |panes: &[String], title: &str| panes.iter().any(|pane| pane == title);
    assert!(panes.iter().all(|panes| has(panes, "Recorded calls") && has(panes, "Kernels")));
    let elsewhere = panes.iter().map(|panes| has(panes, "Work elsewhere")).collect::<Vec<_>>();
    // `app::forked` has the least time of its own.
    assert_eq!(elsewhere, [false, false, false, true]);
    let names = |name: &str| {
        let times = snapshot.site(name).unwrap().series[0].kernel_times.as_ref().unwrap();
        times.kernels.iter().map(|kernel| kernel.name.clone()).collect::<Vec<_>>()
    };
    let shown: Vec<Vec<(String, String)>> =
        serde_json::from_value(seen["kernels"].clone()).unwrap();
    let functions = ["app::biased", "app::saxpy", "model::decode", "app::forked"];
    let (whole, short): (Vec<Vec<String>>, Vec<Vec<String>>) =
        shown.into_iter().map(|kernels| kernels.into_iter().unzip()).unzip();
    assert_eq!(whole, functions.map(names));
    // Kernels with one name and different grids share the short name, too.
    let distinct = |names: &[String]| BTreeSet::from_iter(names.to_vec()).len();
    assert_eq!(distinct(&short[2]), distinct(&whole[2]));
    assert!(short[2].iter().all(|name| name.chars().count() <= 72), "{short:?}");
    assert!(short[2][0].contains("C<256>"), "{short:?}");
    let first = serde_json::json!([
        "128×2",
        "256",
        "40",
        "4\u{202f}096 B",
        "1",
        "21.10 µs",
        "18.99 µs – 25.32 µs",
        "126.6 µs",
        "100.0%"
    ]);
    assert_eq!(seen["first"], first);
    assert_eq!(
        seen["calls"][2],
        "8 calls · 133 kernels per call · 3 streams · idle 75.7% · 2 records without times"
    );
    assert_eq!(seen["overflow"], false);
}

#[test]
fn one_kernel_of_one_call_is_singular() {
    let mut snapshot = kernels();
    snapshot.sites = vec![snapshot.sites[1].clone()];
    let times = snapshot.sites[0].series[0].kernel_times.as_mut().unwrap();
    (times.opened, times.kernels_per_call, times.zero_times) = (1, Some(1.0), 1);
    let question = format!(
        r#"{OPEN}
        const panes = all(".pane").filter((pane) => pane.querySelector("h3").textContent === "Recorded calls");
        return panes.map((pane) => pane.querySelector("header span").textContent);"#
    );
    let seen: Vec<String> = serde_json::from_value(ask(&snapshot, &question)).unwrap();
    assert!(seen[0].starts_with("1 call · 1 kernel per call · "), "{seen:?}");
    assert!(seen[0].ends_with(" · 1 record without times"), "{seen:?}");
}

#[test]
fn opened_row_counts_the_kernels_that_are_left_out() {
    let mut snapshot = kernels();
    snapshot.sites = vec![snapshot.sites[1].clone()];
    let times = snapshot.sites[0].series[0].kernel_times.as_mut().unwrap();
    let kernel = times.kernels[0].clone();
    // Names that take most of the room for kernels.
    let kernel = |i: usize| crate::Kernel {
        name: format!("kernel_{i}_{}", "a".repeat(9_000)),
        share: 0.01,
        ..kernel.clone()
    };
    times.kernels = (0..100).map(kernel).collect();
    let question = format!(
        r#"{OPEN}
        return all(".pane:has(.kernels)").map((pane) => [
            pane.querySelector("header span").textContent,
            ...[...pane.querySelector("tr:last-child").children].map((cell) => cell.textContent),
        ]);"#
    );
    let seen: Vec<Vec<String>> = serde_json::from_value(ask(&snapshot, &question)).unwrap();
    let left = ["100 · share of their time", "and 67 more, in the JSON report", "67.0%"];
    assert_eq!(seen, [left]);
}

#[test]
fn filter_matches_kernels() {
    let seen = ask(
        &kernels(),
        r#"
        const search = document.querySelector("[type=search]");
        search.value = "C<256> CollectiveMma";
        search.dispatchEvent(new Event("input"));
        const groups = [...document.querySelectorAll(".rows tbody")].filter((group) => !group.hidden);
        return groups.map((group) => group.querySelector(".name").textContent);"#,
    );
    assert_eq!(seen, serde_json::json!(["model::decode"]));
}
