//! Tests for the page in a browser.

use std::collections::BTreeSet;

use super::*;

#[path = "../../../tests/support/chromium.rs"]
mod chromium;

const DESKTOP: [u32; 2] = [1440, 900];
const LAPTOP: [u32; 2] = [1280, 800];
/// What the bars of a browser leave of a laptop's screen of 1366 by 768 pixels.
const LOW: [u32; 2] = [1366, 657];
const PHONE: [u32; 2] = [360, 800];

/// Runs a script in the page for this snapshot, and returns its answer. The page must not report
/// any error.
fn ask(snapshot: &Snapshot, question: &str) -> serde_json::Value {
    let seen = chromium::ask(&snapshot.to_html(), DESKTOP, question);
    assert_eq!(seen.console, [""; 0]);
    seen.answer
}

/// Opens every row, and waits until the charts are drawn.
const OPEN: &str = r#"
    const all = (selector) => [...document.querySelectorAll(selector)];
    const drawn = () => new Promise((resolve) => setTimeout(resolve, 300));
    all(".row button").forEach((button) => button.click());
    await drawn();
"#;

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
    assert_eq!(sorted.len(), 2 * 11);
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
fn launches_and_theme_toggle() {
    let seen = ask(
        &everything(),
        r#"
        const launch = document.querySelector(".launch");
        const look = () => [getComputedStyle(launch).display, getComputedStyle(document.body).backgroundColor];
        const before = look();
        document.querySelector(".tools [type=checkbox]").click();
        document.querySelector(".theme").click();
        return [before, look()];"#,
    );
    assert_eq!(seen[0][0], "table-row");
    assert_eq!(seen[1][0], "none");
    assert_ne!(seen[0][1], seen[1][1]);
}

#[test]
fn hostile_texts_are_shown_verbatim() {
    let snapshot = hostile();
    let seen = ask(
        &snapshot,
        &format!(
            r#"{OPEN}
            return {{
                title: document.title,
                names: all("tbody .row:first-child .name").map((name) => name.textContent),
                declared: all(".detail code").map((code) => code.textContent),
                foreign: all("img, iframe, object, link[rel=stylesheet]").length + all("script").length,
            }}"#
        ),
    );
    assert_ne!(seen["title"], "owned");
    // The data, the page's script, and the test's script.
    assert_eq!(seen["foreign"], 3);
    let list = |key: &str| -> Vec<String> { serde_json::from_value(seen[key].clone()).unwrap() };
    let names = list("names");
    for site in snapshot.sites.iter().filter(|site| site.calls > 0) {
        assert!(names.contains(&printable(&site.name)), "{:?}: {names:?}", site.name);
    }
    let declared = list("declared");
    let is_shown = |text: &str| declared.iter().any(|shown| shown.starts_with(&printable(text)));
    for Site { file, options, series, .. } in
        snapshot.sites.iter().filter(|site| !site.series.is_empty())
    {
        let keys = series.iter().filter_map(|series| series.key.as_deref());
        assert!([file.as_str(), options].into_iter().chain(keys).all(is_shown), "{declared:?}");
    }
}

#[test]
fn page_fits_a_phone() {
    let seen = on_phone(&everything());
    assert_eq!(seen["cut"], serde_json::json!([]));
    assert!(seen["width"].as_u64() <= Some(360), "{}", seen["width"]);
    assert!(seen["charts"].as_u64() > Some(10));
    // The list of kernels scrolls by itself.
    let width = &on_phone(&kernels())["width"];
    assert!(width.as_u64() <= Some(360), "{width}");
}

/// Returns reports whose pages have different things above the rows.
fn various() -> Vec<Snapshot> {
    let mut two = nested();
    two.devices.push(Device { id: "cuda:1".to_owned(), ..two.devices[0].clone() });
    two.sites[1].series[0].device = "cuda:1".to_owned();
    let mut starved = nested();
    for series in starved.sites.iter_mut().flat_map(|site| &mut site.series) {
        (series.fed, series.starved, series.upper_bound) = (0, series.measured, true);
        series.kernel_times = None;
    }
    let mut nodes = starved.tree.clone();
    nodes.iter_mut().for_each(|node| (node.upper_bound, node.launch_bound) = (true, false));
    // Most of the run is outside of functions.
    let mut outside = nested();
    outside.devices[0].coverage = Some(Coverage { busy: 0.2, idle: 0.8, ..coverage() });
    let mut eight = two.clone();
    let more = (2..8).map(|i| Device { id: format!("cuda:{i}"), ..two.devices[0].clone() });
    eight.devices.extend(more);
    vec![nested(), two, eight, starved.with_tree(nodes), outside, everything(), kernels(), rated()]
}

#[test]
fn first_row_is_on_the_first_screen() {
    for (at, snapshot) in various().into_iter().enumerate() {
        for [width, height] in [[1440, 800], LOW, PHONE] {
            let seen = in_frame(
                &snapshot,
                [width, height],
                "return page.querySelector('.row').getBoundingClientRect().bottom;",
            );
            let bottom = seen.as_f64().unwrap();
            assert!(
                bottom > 0.0 && bottom <= f64::from(height),
                "{at}, {width}×{height}: {bottom}"
            );
        }
    }
}

#[test]
fn clipped_texts_have_an_ellipsis_and_a_title() {
    let clipped = r#"
        const style = (node) => page.defaultView.getComputedStyle(node);
        const own = (node) => node.placeholder ?? [...node.childNodes].filter((child) => child.nodeType === 3)
            .map((child) => child.data).join("").trim();
        const clipped = [...page.querySelectorAll("body *")].filter((node) =>
            node.checkVisibility({ opacityProperty: true }) && node.tagName !== "OPTION" && own(node)
            && style(node).overflowX !== "visible" && node.scrollWidth > node.clientWidth + 1);
        const bad = clipped.filter((node) => style(node).textOverflow !== "ellipsis"
            || !node.title.endsWith(node.placeholder ?? node.innerText.trim()));
        return [clipped.length, bad.map((node) => `${node.tagName}.${node.className}: ${node.title} | ${node.innerText}`)];"#;
    let mut found = 0;
    for mut snapshot in various() {
        for node in &mut snapshot.tree {
            node.name = format!("{}::{}", "module".repeat(8), node.name);
        }
        for window in [[1440, 800], LOW, [800, 600], PHONE] {
            let seen = in_frame(&snapshot, window, clipped);
            assert_eq!(seen[1], serde_json::json!([]), "{window:?}");
            found += seen[0].as_u64().unwrap();
        }
    }
    assert!(found > 20, "{found}");
}

#[test]
fn no_text_has_paired_backticks() {
    let quoted = r#"
        page.querySelectorAll(".row button").forEach((button) => button.click());
        await new Promise((resolve) => setTimeout(resolve, 300));
        return [...page.querySelectorAll("body :not(script)")].flatMap((node) => [...node.childNodes])
            .filter((node) => node.nodeType === 3 && node.data.includes("`")).map((node) => node.data);"#;
    for mut snapshot in various() {
        for site in &mut snapshot.sites {
            site.warnings.push("use `cold`".to_owned());
        }
        assert_eq!(in_frame(&snapshot, LOW, quoted), serde_json::json!([]));
    }
}

/// Reads the contrast of every text with what is painted behind it, in both themes.
const CONTRAST: &str = r#"
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const pixel = (colors) => {
        for (const color of colors) {
            paint.fillStyle = color;
            paint.fillRect(0, 0, 1, 1);
        }
        return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const style = (node) => getComputedStyle(node);
    const behind = (node) => (node ? [...behind(node.parentElement), style(node).backgroundColor] : ["white"]);
    const low = [];
    let texts = 0;
    for (const theme of ["light", "dark"]) {
        document.documentElement.dataset.theme = theme;
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
            const node = walk.currentNode.parentElement;
            if (!walk.currentNode.data.trim() || !node.checkVisibility() || node.closest("script, option")) continue;
            texts += 1;
            const back = behind(node);
            const ink = node.namespaceURI.endsWith("svg") ? style(node).fill : style(node).color;
            const [a, b] = [light(pixel(back)), light(pixel([...back, ink]))].sort((a, b) => b - a);
            const contrast = (a + 0.05) / (b + 0.05);
            if (contrast < 4.5) low.push(`${theme}: ${contrast.toFixed(2)} ${node.tagName}.${node.className} ${walk.currentNode.data}`);
        }
    }
    return { low, texts };
"#;

#[test]
fn texts_have_enough_contrast() {
    let as_table = "document.querySelector('.section-head > button').click();";
    let snapshots = [everything(), kernels(), nested(), nested(), rated()];
    for (snapshot, first) in snapshots.into_iter().zip(["", "", "", as_table, ""]) {
        let seen = ask(&snapshot, &format!("{OPEN} {first} {CONTRAST}"));
        assert!(seen["texts"].as_u64() > Some(100), "{seen}");
        assert_eq!(seen["low"], serde_json::json!([]));
    }
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

/// Runs a script for the page in a frame of this size, which can be smaller than any window, and
/// returns its answer.
fn in_frame(snapshot: &Snapshot, [width, height]: [u32; 2], question: &str) -> serde_json::Value {
    let page = serde_json::to_string(&snapshot.to_html()).unwrap().replace('<', "\\u003c");
    let outer = format!("<body><script>const source = {page};</script></body>");
    let question = format!(
        r#"
        const frame = document.createElement("iframe");
        Object.assign(frame, {{ width: {width}, height: {height}, srcdoc: source }});
        const loaded = new Promise((resolve) => (frame.onload = resolve));
        document.body.append(frame);
        await loaded;
        const page = frame.contentDocument;
        {question}"#
    );
    let seen = chromium::ask(&outer, DESKTOP, &question);
    assert_eq!(seen.console, [""; 0]);
    seen.answer
}

/// Opens all rows of a page that is as narrow as a phone.
fn on_phone(snapshot: &Snapshot) -> serde_json::Value {
    in_frame(
        snapshot,
        PHONE,
        r#"
        page.querySelectorAll(".row button").forEach((button) => button.click());
        await new Promise((resolve) => setTimeout(resolve, 300));
        const cut = [...page.querySelectorAll("body *")].filter((node) => {
            const box = node.getBoundingClientRect();
            return box.width > 0 && box.right > 361;
        });
        return {
            width: page.scrollingElement.scrollWidth,
            cut: cut.map((node) => `${node.tagName}.${node.className}: ${node.textContent}`),
            charts: page.querySelectorAll(".pane svg").length,
        };"#,
    )
}

#[test]
fn shares_on_the_bar_fit_or_are_hidden() {
    let mut two = nested();
    two.devices.push(Device { id: "cuda:1".to_owned(), ..two.devices[0].clone() });
    for site in &mut two.sites {
        site.series[0].device = "cuda:1".to_owned();
    }
    let labels = r#"
        const labels = [...document.querySelectorAll(".time-bar span")].filter((label) => label.checkVisibility());
        return labels.map((label) => {
            const part = label.parentElement.getBoundingClientRect();
            return [label.textContent, part.width - label.getBoundingClientRect().width];
        });"#;
    for window in [DESKTOP, LAPTOP, [800, 600], [500, 800]] {
        for parts in [0.01, 0.03, 0.05, 0.08] {
            let mut snapshot = two.clone();
            for device in &mut snapshot.devices {
                let coverage = device.coverage.as_mut().unwrap();
                (coverage.busy, coverage.idle) = (coverage.attributed + parts, 1.0 - parts);
            }
            let seen = chromium::ask(&snapshot.to_html(), window, labels);
            let spare: Vec<(String, f64)> = serde_json::from_value(seen.answer).unwrap();
            assert!(!spare.is_empty() && spare.iter().all(|(_, spare)| *spare >= 0.0), "{spare:?}");
        }
    }
}

#[test]
fn long_names_and_keys_fit_a_small_window() {
    let mut snapshot = rated();
    for site in &mut snapshot.sites {
        site.name = format!("application::of_many_modules::{}::<T>", "deeply_nested".repeat(4));
        for series in &mut site.series {
            series.key = Some("f32x".repeat(30));
        }
    }
    let width =
        "return document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth;";
    for window in [[1200, 900], [1420, 900], [900, 900]] {
        let seen = chromium::ask(&snapshot.to_html(), window, width);
        assert_eq!((seen.answer, &*seen.console), (0.into(), &[][..]), "{window:?}");
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
                calls: all(".pane").filter((pane) => within(pane, "h3")[0] === "Opened calls")
                    .map((pane) => within(pane, "header span")[0]),
                overflow: document.scrollingElement.scrollWidth > innerWidth,
            }}"#
        ),
    );
    let panes: Vec<Vec<String>> = serde_json::from_value(seen["panes"].clone()).unwrap();
    let has = |panes: &[String], title: &str| panes.iter().any(|pane| pane == title);
    assert!(panes.iter().all(|panes| has(panes, "Opened calls") && has(panes, "Kernels")));
    let elsewhere = panes.iter().map(|panes| has(panes, "Work elsewhere")).collect::<Vec<_>>();
    // `app::forked` has the shortest total.
    assert_eq!(elsewhere, [false, false, false, true]);
    let names = |name: &str| {
        let times = snapshot.site(name).unwrap().series[0].kernel_times().unwrap();
        times.kernels.iter().map(|kernel| kernel.name.clone()).collect::<Vec<_>>()
    };
    let shown: Vec<Vec<(String, String)>> =
        serde_json::from_value(seen["kernels"].clone()).unwrap();
    let functions = ["model::decode", "app::biased", "app::saxpy", "app::forked"];
    let (whole, short): (Vec<Vec<String>>, Vec<Vec<String>>) =
        shown.into_iter().map(|kernels| kernels.into_iter().unzip()).unzip();
    assert_eq!(whole, functions.map(names));
    // Kernels with one name and different grids share the short name, too.
    let distinct = |names: &[String]| BTreeSet::from_iter(names.to_vec()).len();
    assert_eq!(distinct(&short[0]), distinct(&whole[0]));
    assert!(short[0].iter().all(|name| name.chars().count() <= 72), "{short:?}");
    assert!(short[0][0].contains("C<256>"), "{short:?}");
    let first = serde_json::json!([
        "128×2",
        "256",
        "40",
        "4\u{202f}096 B",
        "30",
        "4.000 µs",
        "3.600 µs – 4.800 µs",
        "960.0 µs",
        "46.5%"
    ]);
    assert_eq!(seen["first"], first);
    assert_eq!(
        seen["calls"][0],
        "8 calls · 133 kernels per call · 3 streams · idle 75.7% · 2 records without times"
    );
    assert_eq!(seen["overflow"], false);
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

#[test]
fn page_without_functions_has_a_theme() {
    let empty = Snapshot::new(off().process, Vec::new(), Vec::new());
    let theme = "return [document.querySelector('.theme').hidden, document.querySelector('table') === null];";
    assert_eq!(ask(&empty, theme), serde_json::json!([false, true]));
}

#[test]
fn bars_with_equal_functions_have_their_types_and_modules() {
    let mut nodes = tree();
    nodes.push(node("app::Model::load", None, 1e4, 1e4));
    let names = [
        "llama::Block::forward",
        "llama::ops::norm",
        "llama::Attention::forward",
        "bert::ops::norm",
    ];
    for (node, name) in nodes.iter_mut().zip(names) {
        node.name = name.to_owned();
    }
    nodes.push(node("llama::ops::gather", None, 1e4, 1e4));
    let snapshot = kernels().with_tree(nodes);
    let seen = ask(
        &snapshot,
        r#"return [".icicle tbody th", ".legend .name"].map((names) =>
            [...document.querySelectorAll(names)].map((name) => name.innerText));"#,
    );
    let [mut seen, legend]: [Vec<String>; 2] = serde_json::from_value(seen).unwrap();
    seen.retain(|name| !name.starts_with('<'));
    let expected = [
        "Block::forward",
        "Attention::forward",
        "bert::ops::norm",
        "llama::ops::norm",
        "Model::load",
        "gather",
    ];
    assert_eq!(seen, expected);
    let functions = legend.iter().filter(|name| expected.contains(&name.as_str()));
    assert_eq!((functions.count(), &*legend[0]), (6, "Attention::forward"));
}

/// Two devices leave little room for their legends.
#[test]
fn legend_of_each_device_names_a_function_on_a_phone() {
    let mut snapshot = kernels();
    let mut second = snapshot.devices[0].clone();
    second.id = "cuda:1".to_owned();
    snapshot.devices.push(second);
    let mut nodes = tree();
    for node in &mut nodes {
        let half_ns = 0.5 * node.self_ns;
        node.self_ns_by_device = ["cuda:0", "cuda:1"].map(|id| (id.to_owned(), half_ns)).into();
    }
    let page = snapshot.with_tree(nodes).to_html();
    // A window is at least 500 pixels wide, which is narrow enough.
    let seen = chromium::ask(
        &page,
        [500, 800],
        r#"return [...document.querySelectorAll(".legend")].map((legend) =>
            [...legend.children].filter((part) => part.checkVisibility())
                .map((part) => part.querySelector(".name")?.textContent ?? part.textContent));"#,
    );
    let seen: Vec<Vec<String>> = serde_json::from_value(seen.answer).unwrap();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|legend| legend[0] == "attention"), "{seen:?}");
}

#[test]
fn icicle_enlarges_the_clicked_path() {
    let seen = ask(
        &nested(),
        r#"
        const rows = [...document.querySelectorAll(".tree tbody tr")];
        const row = (name) => rows.find((row) => row.cells[0].textContent === name);
        const whole = document.querySelector(".tree").getBoundingClientRect().width;
        const wide = (name) => Math.round((100 * row(name).getBoundingClientRect().width) / whole);
        const look = async () => {
            await new Promise((resolve) => setTimeout(resolve, 400));
            return ["pass", "attention", "<not annotated>"].map(wide);
        };
        const said = () => document.querySelector(".section-head > output").textContent;
        const before = await look();
        row("attention").click();
        const enlarged = await look();
        const about = said();
        row("attention").click();
        return { before, enlarged, about, after: await look() };"#,
    );
    assert_eq!(seen["before"], serde_json::json!([50, 31, 50]));
    assert_eq!(seen["enlarged"], serde_json::json!([100, 100, 0]));
    assert_eq!(seen["after"], seen["before"]);
    let about = seen["about"].as_str().unwrap();
    assert!(about.contains("(23.4%) · 160 calls · GPU 1.250 µs per call"), "{about}");
    assert!(about.starts_with("pass › attention: 200.0 µs in total, 150.0 µs its own"), "{about}");
}

#[test]
fn bars_stay_under_the_pointer() {
    let seen = ask(
        &nested(),
        r#"
        const rows = [...document.querySelectorAll(".tree tbody tr")];
        const tops = () => rows.map((row) => row.getBoundingClientRect().top);
        const before = tops();
        rows[0].dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
        const said = document.querySelector(".section-head > output").textContent;
        return [said.includes("launch-bound: GPU busy"), JSON.stringify(tops()) === JSON.stringify(before)];"#,
    );
    assert_eq!(seen, serde_json::json!([true, true]));
}

#[test]
fn icicle_follows_the_keyboard_and_turns_into_a_table() {
    let seen = ask(
        &nested(),
        r#"
        const rows = [...document.querySelectorAll(".tree tbody tr")];
        const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        const name = () => document.activeElement.cells[0].textContent;
        rows[0].focus();
        const names = ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp"].map((key) => (press(key), name()));
        document.querySelector(".section-head > button").click();
        const shown = getComputedStyle(rows[0].cells[1]).display;
        return { names, shown, stops: document.querySelectorAll(".tree [tabindex]").length };"#,
    );
    let names = ["<not annotated>", "pass", "attention", "norm", "pass"];
    // `pass` and `<not annotated>` took the same time.
    assert_eq!(seen["names"], serde_json::json!(names));
    assert_eq!((&seen["shown"], &seen["stops"]), (&"table-cell".into(), &0.into()));
}
