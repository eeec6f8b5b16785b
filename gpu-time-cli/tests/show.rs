//! `show`, and what every tool has.

use gpu_time_report::{Snapshot, Terminal};

use crate::made::{report, site};
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
fn functions_of_one_name_have_their_places() {
    let folder = Folder::new();
    let sites = || [7, 9].map(|line| site("app::f", line, vec![])).into();
    let files =
        [1, 2].map(|pid| folder.write(&pid.to_string(), report(pid, vec![], sites()).to_json()));
    let [one, both] = [&files[..1], &files].map(|files| {
        let arguments = ["show".into()].into_iter().chain(files.iter().cloned());
        tool(&arguments.collect::<Vec<_>>()).fine()
    });
    for table in [one, both] {
        for line in [7, 9] {
            assert!(table.contains(&format!("\napp::f (src/main.rs:{line})  ")), "{table}");
        }
    }
}

/// The table as it is shown on a terminal of so many columns.
#[cfg(target_os = "linux")]
fn on_terminal(columns: u16, variables: &[(&str, &str)]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
    use rustix::termios::{Winsize, tcsetwinsize};
    use std::{fs::File, io::Read, process::Command};

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let peer = ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&terminal, size).unwrap();
    let mut tool = Command::new(env!("CARGO_BIN_EXE_gpu-time"));
    tool.args(["show".into(), first()]).env_clear().envs(variables.iter().copied());
    let mut child = tool.stdout(peer).spawn().unwrap();
    // The command has a copy of the terminal's other end, without which reading comes to one.
    drop(tool);
    let mut text = Vec::new();
    // That end is told by an error on Linux.
    _ = File::from(terminal).read_to_end(&mut text);
    assert!(child.wait().unwrap().success());
    String::from_utf8(text).unwrap().replace("\r\n", "\n")
}

#[test]
#[cfg(target_os = "linux")]
fn a_terminal_has_colours_unless_it_must_not() {
    let report = Snapshot::from_json(&std::fs::read(first()).unwrap()).unwrap();
    let terminal = |colours| Terminal { colours, columns: Some(200) };
    let xterm = ("TERM", "xterm-256color");
    assert_eq!(on_terminal(200, &[xterm]), report.to_table(terminal(true)));
    assert!(on_terminal(200, &[xterm]).contains('\u{1b}'));
    let plain = report.to_table(terminal(false));
    for variables in [
        &[("TERM", "dumb")][..],
        &[xterm, ("NO_COLOR", "1")],
        &[xterm, ("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")],
        &[xterm, ("CLICOLOR", "0")],
        &[],
    ] {
        assert_eq!(on_terminal(200, variables), plain, "{variables:?}");
    }
    let narrow = Terminal { colours: false, columns: Some(100) };
    assert_eq!(on_terminal(100, &[("TERM", "dumb")]), report.to_table(narrow));
}

#[test]
fn it_shows_other_formats_and_many_files() {
    let csv = tool(&["show".into(), first(), "--format".into(), "csv".into()]).fine();
    assert!(csv.starts_with("site,file,line,"), "{csv}");
    let json = tool(&["show".into(), first(), "--format=json".into()]).fine();
    let report = Snapshot::from_json(&std::fs::read(first()).unwrap()).unwrap();
    assert_eq!((csv, json), (report.to_csv(), report.to_json() + "\n"));
    let table = tool(&["show".into(), first(), first()]).fine();
    assert_eq!(table, report.to_string().repeat(2));
}

/// What programs read is one table, or a document in each line.
#[test]
fn many_files_make_one_output() {
    let folder = Folder::new();
    let second = folder.write("a,\"b\".json", std::fs::read(first()).unwrap());
    let show = |format: &str| tool(&["show".into(), first(), second.clone(), format.into()]).fine();
    let report = Snapshot::from_json(&std::fs::read(first()).unwrap()).unwrap();
    let json = show("--format=json");
    assert_eq!(json.lines().count(), 2);
    for line in json.lines() {
        assert_eq!(Snapshot::from_json(line.as_bytes()).unwrap(), report);
    }
    let csv = show("--format=csv");
    let mut lines = csv.lines();
    let alone = report.to_csv();
    let (header, rows) = alone.split_once('\n').unwrap();
    assert_eq!(lines.next(), Some(&*format!("report,{header}")));
    for file in [first(), second] {
        let name = file.display().to_string().replace('"', "\"\"");
        for row in rows.lines() {
            assert_eq!(lines.next(), Some(&*format!("\"{name}\",{row}")));
        }
    }
    assert_eq!(lines.next(), None);
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
    assert_eq!(tool(&["nonsense"]).code, Some(2));
}

/// No page is named that there is none of.
#[test]
fn every_command_has_a_manual_page() {
    let page = tool(&["man"]).fine();
    assert!(page.starts_with(".ie") && page.contains(".SH DESCRIPTION"), "{page}");
    let pages = page.lines().filter_map(|line| line.strip_prefix("gpu\\-time\\-"));
    let commands: Vec<&str> = pages.filter_map(|page| page.strip_suffix("(1)")).collect();
    let known = ["show", "html", "merge", "compare", "doctor", "completions", "man"];
    assert_eq!(commands, known);
    for command in known {
        let page = tool(&["man", command]).fine();
        assert!(page.contains(&format!("\ngpu\\-time\\-{command} \\- ")), "{page}");
    }
    assert!(tool(&["man", "compare"]).fine().contains("\\-\\-threshold\\fR"));
    let line = tool(&["man", "help"]).refused();
    assert_eq!(line, "`help` is no command; `gpu-time --help` lists them");
}
