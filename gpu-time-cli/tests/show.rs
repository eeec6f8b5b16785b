//! `show`, and what every tool has.

use gpu_time_report::Snapshot;

use crate::{Folder, first, tool};

#[test]
fn the_table_is_the_one_that_the_program_printed() {
    let table = tool(&["show".into(), first()]).fine();
    let report = Snapshot::from_json(&std::fs::read(first()).unwrap()).unwrap();
    assert_eq!(table, report.to_string());
    assert!(table.contains("app::train"), "{table}");
    // A name with an escape and a line break.
    assert!(table.contains("a,\"b\"\\n\\u{1b}<i>"), "{table}");
}

#[test]
fn it_shows_other_formats_and_many_files() {
    let csv = tool(&["show".into(), first(), "--format".into(), "csv".into()]).fine();
    assert!(csv.starts_with("site,file,line,"), "{csv}");
    let json = tool(&["show".into(), first(), "--format=json".into()]).fine();
    assert_eq!(
        tool(&["show".into(), first(), first(), "--format=json".into()]).fine(),
        json.repeat(2)
    );
}

#[test]
fn a_page_holds_the_report() {
    let folder = Folder::new();
    let page = folder.path("page.html");
    assert_eq!(tool(&["html".into(), first(), "-o".into(), page.clone()]).fine(), "");
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(tool(&["html".into(), first()]).fine(), page);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("app::train"), "{page}");
    // The name with an escape and a line break.
    assert!(!page.contains("<i>"), "{page}");
}

#[test]
fn it_explains_itself() {
    assert!(tool(&["--help"]).fine().contains("GPU_TIME_REPORT=json:PATH"));
    assert!(tool(&["completions", "bash"]).fine().contains("complete -F"));
    assert!(tool(&["man"]).fine().starts_with(".ie"));
    assert_eq!(tool(&["nonsense"]).code, Some(2));
}
