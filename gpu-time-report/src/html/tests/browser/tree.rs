//! Tests of the drawn call tree and of the bars of device time.

use super::*;
use crate::tree::fixtures::by_events;

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
fn bars_with_equal_functions_have_their_types_and_modules() {
    let mut nodes = tree();
    nodes.push(node("app::Model::load", None, 1e4, 1e4));
    let names = [
        "llama::Block::forward",
        "llama::ops::norm",
        "llama::Attention::forward",
        "bert::ops::norm",
    ];
    for (path, name) in nodes.iter_mut().zip(names) {
        (path.name, path.site) = (name.to_owned(), node(name, None, 0.0, 0.0).site);
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
    assert!(
        seen.iter().all(|legend| legend[..2] == ["share of the run:", "attention"]),
        "{seen:?}"
    );
}

/// The function that is the longest of one device may be short on another.
#[test]
fn shared_legend_names_every_function_on_a_phone() {
    let mut snapshot = kernels();
    snapshot.devices[0].coverage.as_mut().unwrap().not_timed = 0.1;
    let device = snapshot.devices[0].clone();
    let id = |at: usize| format!("cuda:{at}");
    snapshot.devices = (0..8).map(|at| Device { id: id(at), ..device.clone() }).collect();
    let nodes = (0..8).map(|at| {
        let ns = 1e5 / (at + 1) as f64;
        Node { self_ns_by_device: [(id(at), ns)].into(), ..node(&format!("f{at}"), None, ns, ns) }
    });
    let nodes = nodes.collect();
    let seen = in_frame(
        &snapshot.with_tree(nodes),
        PHONE,
        r#"return [...page.querySelectorAll(".legend .name")].filter((name) => name.checkVisibility())
            .map((name) => name.textContent);"#,
    );
    let functions = ["f0", "f1", "f2", "f3", "f4", "f5", "f6", "other functions"];
    let rest = ["<annotated, not timed>", "<not annotated>", "idle"];
    assert_eq!(seen, serde_json::json!([&functions[..], &rest].concat()));
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

/// A short function far down the tree has a narrow bar below the edge of the box.
#[test]
fn first_function_is_marked_and_in_sight() {
    let mut nodes = vec![node("main", None, 100e6, 1e6)];
    for depth in 1..12 {
        nodes.push(node(&format!("f{depth}"), Some(depth - 1), 99e6, 1e6));
    }
    nodes.push(node("gather", Some(11), 88e6, 88e6));
    let mut snapshot = kernels();
    snapshot.sites.truncate(1);
    snapshot.sites[0].name = "gather".to_owned();
    let more = (0..20).map(|at| node(&format!("g{at}"), None, 50e6, 50e6));
    nodes.extend(more);
    for window in [[1440, 800], LOW, PHONE] {
        let seen = in_frame(
            &snapshot.clone().with_tree(nodes.clone()),
            window,
            r#"
            const bounds = (node) => node.getBoundingClientRect();
            const first = page.querySelector(".icicle .first");
            const [box, bar] = [page.querySelector(".icicle"), first].map(bounds);
            const key = page.querySelector(".section-head > .key");
            const fits = key.scrollWidth <= key.clientWidth && bounds(key).right < innerWidth;
            const name = first.cells[0].innerText;
            const said = () => page.querySelector(".section-head > output").textContent.split(":")[0];
            key.click();
            await new Promise((resolve) => setTimeout(resolve, 400));
            return [name, key.innerText, fits, bar.top >= box.top && bar.bottom <= box.bottom,
                said(), bounds(first).width > 0.9 * box.width];"#,
        );
        let path = "… › f10 › f11 › gather";
        let expected = serde_json::json!(["gather", "look here", true, true, path, true]);
        assert_eq!(seen, expected, "{window:?}");
    }
}

#[test]
fn underlines_have_enough_contrast() {
    let question = r#"
        const rows = [...document.querySelectorAll(".icicle tbody tr")];
        const fills = ["", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];
        const low = [];
        for (const theme of ["light", "dark"]) {
            document.documentElement.dataset.theme = theme;
            const page = style(document.querySelector(".icicle")).backgroundColor;
            for (const [first, fill] of ["", "first"].flatMap((first) => fills.map((fill) => [first, fill]))) {
                rows[0].className = `${fill} waits ${first}`;
                const colours = (text) => text.match(/rgba?\([^)]*\)/g) ?? [];
                const edge = style(rows[0], "::after");
                const lines = first
                    ? [edge.borderBottomColor, ...colours(edge.boxShadow)]
                    : colours(style(rows[0]).boxShadow);
                // From the page to the fill.
                const seen = [page, ...lines, style(rows[0]).backgroundColor].map((colour) => pixel([colour]));
                for (let i = 1; i < seen.length; i++) {
                    const found = contrast(seen[i - 1], seen[i]);
                    if (found < 3) low.push(`${theme} ${fill} ${first} ${i}: ${found.toFixed(2)}`);
                }
            }
        }
        return low;"#;
    // The transition of the bars must not delay their colours.
    let still = "document.querySelectorAll('.icicle tr').forEach((row) => (row.style.transition = 'none'));";
    let seen = ask(&nested(), &format!("{COLOURS} {still} {question}"));
    assert_eq!(seen, serde_json::json!([]));
}

/// A path that contains an upper bound has one for its width.
#[test]
fn widths_that_are_upper_bounds_are_hatched() {
    let seen = |nodes| {
        let question = r#"
            const rows = [...document.querySelectorAll(".icicle tbody tr")];
            const hatched = (row) => getComputedStyle(row).backgroundImage.includes("(45deg");
            return [rows.filter(hatched).map((row) => row.cells[0].textContent),
                document.querySelector(".section-head > output").textContent];"#;
        ask(&kernels().with_tree(nodes), question)
    };
    let hint = "width: GPU time · click to enlarge";
    let bounds = serde_json::json!([
        ["pass", "attention", "norm"],
        format!("{hint} · hatched: upper bounds")
    ]);
    assert_eq!(seen(by_events()), bounds);
    let known = by_events().into_iter().map(|node| Node { upper_bound: false, ..node }).collect();
    assert_eq!(seen(known), serde_json::json!([[], hint]));
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
        return [said.includes("waits for the CPU: the GPU works"), JSON.stringify(tops()) === JSON.stringify(before)];"#,
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
        document.querySelector(".section-head > .flip").click();
        const shown = getComputedStyle(rows[0].cells[1]).display;
        return { names, shown, stops: document.querySelectorAll(".tree [tabindex]").length };"#,
    );
    let names = ["<not annotated>", "pass", "attention", "norm", "pass"];
    // `pass` and `<not annotated>` took the same time.
    assert_eq!(seen["names"], serde_json::json!(names));
    assert_eq!((&seen["shown"], &seen["stops"]), (&"table-cell".into(), &0.into()));
}
