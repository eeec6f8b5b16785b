//! Tests for the page's text. The tests that need a browser are in `browser`.

use super::*;
use crate::Site;
use crate::fixtures::{everything, kernels, off, on_host, rated};

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
    process.warnings.extend(HOSTILE.map(str::to_owned));
    for device in &mut snapshot.devices {
        (device.name, device.driver) = (next(), Some(next()));
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
    snapshot
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
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let report = data["report"].to_string();
    let mut read = Snapshot::from_json(report.as_bytes()).unwrap();
    let series = |snapshot: &mut Snapshot| {
        let all = snapshot.sites.iter_mut().flat_map(|site| &mut site.series);
        all.for_each(|series| series.histogram = Default::default());
    };
    let mut expected = snapshot;
    series(&mut expected);
    series(&mut read);
    assert_eq!(read, expected);
}

#[test]
fn loss_reasons_are_explained_by_the_data() {
    let page = everything().to_html();
    for reason in crate::Lost::ALL {
        let entry = format!("\"{}\":\"{}\"", reason.name(), reason.meaning());
        assert!(page.contains(&entry), "{entry}");
        assert!(!SCRIPT.contains(reason.meaning()), "{entry}");
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
    assert!(links.len() == 1 && links[0].starts_with("\"data:,\""), "{links:?}");
}

/// Returns the text of the page, one line per cell.
fn text(snapshot: &Snapshot) -> String {
    let page = snapshot.to_html();
    let (_, body) = page.split_once("<body>").unwrap();
    let (body, _) = body.split_once("<script").unwrap();
    let mut text = String::new();
    for part in body.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
        if ["/td>", "/th>", "/tr>", "/li>", "/p>", "/dd>", "/h2>"]
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
    let at = |name: &str| page.find(name).unwrap_or_else(|| panic!("{name}: {page}"));
    // 100 ms on the host, and 2.5, 0.26 and 0.08 ms on the GPU. Launches follow their function.
    assert!(at("app::saxpy") < at("app::train"));
    assert!(at("app::train") < at("launch 0, line 40"));
    assert!(at("launch 0, line 40") < at("gemm 1, line 44"));
    assert!(at("gemm 1, line 44") < at("app::looped"));
    assert!(at("app::looped") < at("app::decode"));
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
    assert!(text.contains("GPU time measured0 ns\n"), "{text}");
}

#[test]
fn host_samples_are_not_fed() {
    let text = text(&on_host());
    assert!(text.contains("\nfed–\n"), "{text}");
    assert!(text.contains("\nGPU samples0\nhost samples100\n"), "{text}");
    assert!(text.contains("GPU time measured0 ns\n"), "{text}");
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
    assert!(text.contains("GPU time measured0 ns\n"), "{text}");
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
        "\napp::biased on cuda:0: the kernel takes 21.10 µs by CUPTI and 22.00 µs by events",
        "14 × `reduce`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!self::text(&everything()).contains("opened"));
}
