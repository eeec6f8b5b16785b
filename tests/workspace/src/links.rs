//! Checks the links of the documentation, in the repository and on docs.rs.
//!
//! A page uses its links by their labels, and defines them at its end for readers of the repository. On
//! docs.rs, the definitions in `src/links.md` come first, so each label must be there as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A page of the documentation, without its blocks of code.
struct Page {
    path: PathBuf,
    lines: Vec<String>,
}

impl Page {
    fn read(path: PathBuf) -> Page {
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut is_code = false;
        let mut lines = Vec::new();
        for line in text.lines() {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            if !is_code && !is_fence {
                lines.push(line.to_owned());
            }
        }
        Page { path, lines }
    }

    /// Returns the links that the page defines, by label.
    fn definitions(&self) -> BTreeMap<&str, &str> {
        self.lines.iter().filter_map(|line| definition(line)).collect()
    }

    /// Returns the page's text, without definitions and code.
    fn prose(&self) -> String {
        let lines = self.lines.iter().map(String::as_str);
        let prose: Vec<&str> = lines.filter(|line| definition(line).is_none()).collect();
        // Every second part is between two backticks.
        prose.join(" ").split('`').step_by(2).collect::<Vec<_>>().join("`")
    }

    /// Returns the labels of the links in the text.
    fn labels(&self) -> BTreeSet<String> {
        between(&self.prose(), "][", ']')
    }

    /// Returns the targets of the links in the text that have no label.
    fn inline_targets(&self) -> BTreeSet<String> {
        between(&self.prose(), "](", ')')
    }

    /// Returns the anchors of the page's headings.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.lines.iter().filter(|line| line.starts_with('#'));
        headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
    }
}

/// Returns the label and the target if the line defines a link.
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("]: ")
}

/// Returns the texts between `start` and the next `end`.
fn between(text: &str, start: &str, end: char) -> BTreeSet<String> {
    text.split(start)
        .skip(1)
        .filter_map(|rest| rest.split_once(end))
        .map(|(found, _)| found.to_owned())
        .collect()
}

/// Returns the anchor that GitHub and rustdoc give a heading.
fn anchor(title: &str) -> String {
    let lower = title.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the pages that docs.rs shows as the guide.
fn guide() -> Vec<Page> {
    let paths = include_str!("../../../src/guide.rs").lines().filter_map(|line| {
        line.strip_prefix("page!(")?.split_once("\"../")?.1.strip_suffix("\");")
    });
    paths.map(|path| Page::read(root().join(path))).collect()
}

/// Returns the other documents, which only readers of the repository see.
fn others() -> Vec<Page> {
    let documents = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/measurements.md",
        "benches/accuracy/results.md",
        "benches/budget/results.md",
        "benches/opened/results.md",
        "benches/overhead/results.md",
        "benches/snapshot/results.md",
        "examples/candle/README.md",
        "examples/candle/results.md",
        "gpu/cupti.md",
        "gpu/results.md",
        "tests/workspace/benches/results.md",
    ];
    documents.map(|name| Page::read(root().join(name))).into()
}

fn is_relative(target: &str) -> bool {
    !target.contains("://")
}

/// Returns `true` if a target is another file of the repository.
fn is_file(target: &str) -> bool {
    is_relative(target) && !target.starts_with('#')
}

/// Returns the reason for which a relative link leads nowhere.
fn fault(page: &Page, target: &str) -> Option<String> {
    let (file, wanted) =
        target.split_once('#').map_or((target, None), |(file, wanted)| (file, Some(wanted)));
    let path =
        if file.is_empty() { page.path.clone() } else { page.path.with_file_name("").join(file) };
    if !path.exists() {
        return Some(format!(
            "`{}` links to `{target}`, which does not exist",
            page.path.display()
        ));
    }
    let has_anchor = wanted.is_none_or(|wanted| Page::read(path).anchors().contains(wanted));
    (!has_anchor).then(|| {
        format!("`{}` links to `{target}`, which has no such heading", page.path.display())
    })
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut faults = Vec::new();
    let mut checked = 0;
    for page in guide().iter().chain(&others()) {
        let (definitions, labels) = (page.definitions(), page.labels());
        let undefined = labels.iter().filter(|label| !definitions.contains_key(label.as_str()));
        faults.extend(
            undefined.map(|label| format!("`{}` does not define `{label}`", page.path.display())),
        );
        let targets =
            definitions.values().map(|target| (*target).to_owned()).chain(page.inline_targets());
        for target in targets.filter(|target| is_relative(target)) {
            checked += 1;
            faults.extend(fault(page, &target));
        }
    }
    assert!(checked > 100, "only {checked} links");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn links_of_the_guide_work_on_docs_rs() {
    let known = Page::read(root().join("src/links.md"));
    let known = known.definitions();
    let pages = guide();
    let mut faults = Vec::new();
    for page in &pages {
        let name = page.path.display();
        let files = page.definitions().into_iter().filter(|(_, target)| is_file(target));
        let unknown = files.filter(|(label, _)| !known.contains_key(label));
        faults.extend(
            unknown
                .map(|(label, _)| format!("`src/links.md` does not define `{label}` of `{name}`")),
        );
        let inline = page.inline_targets();
        let inline = inline.iter().filter(|target| is_file(target));
        faults.extend(inline.map(|target| format!("`{name}` links to `{target}` without a label")));
    }
    for (label, target) in known {
        let Some((module, wanted)) =
            target.strip_prefix("crate::guide::").and_then(|it| it.split_once('#'))
        else {
            continue;
        };
        let file = format!("{}.md", module.replace('_', "-"));
        let page = pages.iter().find(|page| page.path.ends_with(&file));
        if page.is_none_or(|page| !page.anchors().contains(wanted)) {
            faults.push(format!("`{label}` in `src/links.md` leads to no heading of `{file}`"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
