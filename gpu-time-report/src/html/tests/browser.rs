//! Tests for the page in a browser.

use std::collections::BTreeSet;

use super::*;

#[path = "../../../tests/support/chromium.rs"]
mod chromium;
mod table;
mod tree;

const DESKTOP: [u32; 2] = [1440, 900];
const LAPTOP: [u32; 2] = [1280, 800];
/// A laptop's screen of 1366 by 768 pixels, without the bars of a browser.
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

/// Functions for the contrast of colours.
const COLOURS: &str = r#"
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
    const contrast = (one, other) => {
        const [a, b] = [light(one), light(other)].sort((a, b) => b - a);
        return (a + 0.05) / (b + 0.05);
    };
    const style = (node, part) => getComputedStyle(node, part);
"#;

/// Reads the contrast of every text with what is painted behind it, in both themes.
const CONTRAST: &str = r#"
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
            const found = contrast(pixel(back), pixel([...back, ink]));
            if (found < 4.5) low.push(`${theme}: ${found.toFixed(2)} ${node.tagName}.${node.className} ${walk.currentNode.data}`);
        }
    }
    return { low, texts };
"#;

#[test]
fn texts_have_enough_contrast() {
    let as_table = "document.querySelector('.section-head > .flip').click();";
    let snapshots = [everything(), kernels(), nested(), nested(), rated()];
    for (snapshot, first) in snapshots.into_iter().zip(["", "", "", as_table, ""]) {
        let seen = ask(&snapshot, &format!("{OPEN} {first} {COLOURS} {CONTRAST}"));
        assert!(seen["texts"].as_u64() > Some(100), "{seen}");
        assert_eq!(seen["low"], serde_json::json!([]));
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
            const overflows = node.matches(".row > td") && node.scrollWidth > node.clientWidth + 1;
            return box.width > 0 && (box.right > 361 || overflows);
        });
        return {
            width: page.scrollingElement.scrollWidth,
            cut: cut.map((node) => `${node.tagName}.${node.className}: ${node.textContent}`),
            charts: page.querySelectorAll(".pane svg").length,
        };"#,
    )
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
fn page_without_functions_has_a_theme() {
    let empty = Snapshot::new(off().process, Vec::new(), Vec::new());
    let theme = "return [document.querySelector('.theme').hidden, document.querySelector('table') === null];";
    assert_eq!(ask(&empty, theme), serde_json::json!([false, true]));
}
