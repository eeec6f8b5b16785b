//! Writes reports to their targets.

use std::fmt;
use std::io;

use crate::base::console::{self, say};
use crate::base::standard::Standard;
use crate::config::options::Config;
use crate::config::own_files;
use crate::config::path_pattern::quoted;
use crate::config::targets::{Format, Sink, Target};
use gpu_time_report::{Analysis, Snapshot, Terminal};

/// Renders the trace of a snapshot. The second value is a note about what the trace lacks, if
/// anything.
pub type Trace<'a> = &'a dyn Fn(&Snapshot) -> (String, Option<String>);

/// Writes the report to every target. If a target fails, prints the error and the table to stderr,
/// so that the results are not lost.
pub fn deliver(snapshot: &Snapshot, targets: &[Target], config: &Config, trace: Trace<'_>) {
    snapshot.analyzed(|analysis| {
        let mut table_is_due = false;
        for target in targets {
            match target.write(snapshot, analysis, config, trace) {
                Ok(note) => note.iter().for_each(|note| say(note)),
                Err(error) => {
                    say(&format!("cannot write the report to {}: {error}", target.sink));
                    table_is_due |= !targets.contains(&Target::TABLE);
                }
            }
        }
        if table_is_due {
            // If writing to stderr fails, there is nowhere else to report the error.
            let _ = Target::TABLE.write(snapshot, analysis, config, trace);
        }
    });
}

/// Writes the report to files again, of a program that goes on. Says each error once.
pub fn rewrite(snapshot: &Snapshot, files: &[Target], config: &Config, trace: Trace<'_>) {
    snapshot.analyzed(|analysis| {
        for target in files {
            if let Err(error) = target.write(snapshot, analysis, config, trace) {
                console::complain_once(format!(
                    "cannot write the report to {}: {error}",
                    target.sink
                ));
            }
        }
    });
}

/// Returns a warning for each target that is a standard stream closed by the program.
pub fn lost_streams(targets: &[Target]) -> impl Iterator<Item = String> + '_ {
    targets.iter().filter_map(|target| {
        let Sink::Standard(stream) = target.sink else { return None };
        let error = stream.descriptor().err()?;
        Some(format!("no report was written to {}: {error}", target.sink))
    })
}

impl Target {
    /// Renders and writes the report. Returns a note about what the rendering lacks, if anything.
    fn write(
        &self,
        snapshot: &Snapshot,
        analysis: &Analysis,
        config: &Config,
        trace: Trace<'_>,
    ) -> io::Result<Option<String>> {
        let text = match self.format {
            Format::Table => {
                let terminal = Terminal { view: config.view, ..self.sink.terminal() };
                let complaints = console::complaints();
                if *self == Target::TABLE && !complaints.is_empty() {
                    // They already are on stderr.
                    let mut rest = snapshot.clone();
                    rest.process.warnings.retain(|warning| !complaints.contains(warning));
                    rest.analyzed(|analysis| analysis.table(terminal, config.detail))
                } else {
                    analysis.table(terminal, config.detail)
                }
            }
            Format::Json => snapshot.to_json() + "\n",
            Format::Csv => analysis.csv(snapshot),
            Format::Folded => snapshot.to_folded(),
            #[cfg(feature = "html")]
            Format::Html => analysis.html(),
            Format::Pprof => return self.put(&snapshot.to_pprof()).map(|()| None),
            Format::Trace => {
                let (text, note) = trace(snapshot);
                return self.put(text.as_bytes()).map(|()| note);
            }
        };
        self.put(text.as_bytes()).map(|()| None)
    }

    fn put(&self, bytes: &[u8]) -> io::Result<()> {
        match &self.sink {
            Sink::Standard(stream) => console::print(*stream, bytes),
            Sink::File(path) => own_files::write(path, self.format, bytes),
        }
    }
}

impl Sink {
    /// Returns the width and the styles available for the table.
    fn terminal(&self) -> Terminal {
        let terminal = match self {
            Sink::Standard(Standard::Stderr) => Terminal::stderr(),
            Sink::Standard(Standard::Stdout) => Terminal::stdout(),
            Sink::File(_) => return Terminal::default(),
        };
        Terminal { most_functions: Some(Terminal::MOST_FUNCTIONS), ..terminal }
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sink::Standard(Standard::Stderr) => f.write_str("stderr"),
            Sink::Standard(Standard::Stdout) => f.write_str("stdout"),
            Sink::File(path) => f.write_str(&quoted(&path.path())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_time_report as report;
    use std::fs::File;
    use std::path::Path;
    use std::process::Stdio;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use crate::config::options::Options;
    use crate::config::path_pattern::PathPattern;
    use crate::config::targets;

    fn no_trace(_: &Snapshot) -> (String, Option<String>) {
        (String::new(), None)
    }

    fn config() -> Config {
        Config::new(Options::default())
    }

    fn snapshot() -> Snapshot {
        let wall = Duration::from_millis(1234);
        let process = report::Process::new("app".to_owned(), 1, UNIX_EPOCH, wall, None);
        Snapshot::new(process, vec![report::Device::host()], Vec::new())
    }

    #[test]
    fn targets_get_their_renderings() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let sink = |name: &str| {
            Sink::File(PathPattern::parse(path(name).to_str().unwrap(), Path::new("/")).unwrap())
        };
        let target = |format, name: &str| Target { format, sink: sink(name) };
        let snapshot = snapshot();
        deliver(
            &snapshot,
            &[
                target(Format::Table, "t"),
                target(Format::Json, "%p.json"),
                target(Format::Csv, "c"),
            ],
            &config(),
            &no_trace,
        );
        let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
        assert_eq!(read("t"), snapshot.to_string());
        assert_eq!(read(&format!("{}.json", std::process::id())), snapshot.to_json() + "\n");
        assert_eq!(read("c"), snapshot.to_csv());
    }

    #[test]
    fn error_of_a_file_that_is_written_again_and_again_is_said_once() {
        let path = "/no/such/folder/again.json";
        let sink = Sink::File(PathPattern::parse(path, Path::new("/")).unwrap());
        let files = [Target { format: Format::Json, sink }];
        (0..3).for_each(|_| rewrite(&snapshot(), &files, &config(), &no_trace));
        let said = console::complaints().into_iter().filter(|said| said.contains(path));
        assert_eq!(said.count(), 1);
    }

    /// Writes the report to the targets of a list, and returns the names of all files in the folder.
    fn delivered(folder: &Path, list: &str) -> Vec<String> {
        let targets = targets::of_program(list, &mut |entry, why| panic!("{entry}: {why}"));
        deliver(&snapshot(), &targets, &config(), &no_trace);
        let names = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    // Analyses are counted only with debug assertions.
    #[cfg(debug_assertions)]
    #[test]
    fn all_targets_share_one_analysis() {
        let folder = tempfile::tempdir().unwrap();
        let mut kinds = vec!["csv", "folded", "json", "table"];
        kinds.extend(cfg!(feature = "html").then_some("html"));
        kinds.sort_unstable();
        let path = folder.path().display();
        let list: Vec<String> = kinds.iter().map(|kind| format!("{kind}:{path}/{kind}")).collect();
        let before = report::ANALYSES.get();
        assert_eq!(delivered(folder.path(), &list.join(",")), kinds);
        assert_eq!(report::ANALYSES.get() - before, 1);
    }

    /// Writes a file as another process might, at this distance in seconds from now.
    fn foreign(path: &Path, seconds: i64) {
        std::fs::write(path, "of another process").unwrap();
        let distance = Duration::from_secs(seconds.unsigned_abs());
        let now = SystemTime::now();
        let time = if seconds < 0 { now - distance } else { now + distance };
        File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
    }

    fn is_foreign(path: &Path) -> bool {
        std::fs::read_to_string(path).unwrap() == "of another process"
    }

    #[test]
    fn report_of_process_with_same_id_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let id = std::process::id();
        let [first, second] = ["", ".2"].map(|number| format!("r-{id}{number}.json"));
        // It does not matter when the other process ran.
        for (seconds, list) in [(-9_000, "json:{}/r-%p.json"), (9_000, "json:{}/./r-%p.json")] {
            foreign(&folder.path().join(&first), seconds);
            let list = list.replace("{}", &folder.path().display().to_string());
            assert_eq!(delivered(folder.path(), &list), [&*second, &*first], "{seconds}");
            assert!(is_foreign(&folder.path().join(&first)), "{seconds}");
            std::fs::remove_file(folder.path().join(&second)).unwrap();
        }
    }

    #[test]
    fn only_file_of_an_earlier_run_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let list = format!("json:{}/r.json", folder.path().display());
        let [path, second] = ["r.json", "r.2.json"].map(|name| folder.path().join(name));
        foreign(&path, -9_000);
        assert_eq!(delivered(folder.path(), &list), ["r.json"]);
        assert!(!is_foreign(&path));
        // Later reports of this process replace its own file.
        assert_eq!(delivered(folder.path(), &list), ["r.json"]);
        // Another process has replaced it.
        std::fs::remove_file(&path).unwrap();
        foreign(&path, 9_000);
        for _ in 0..2 {
            assert_eq!(delivered(folder.path(), &list), ["r.2.json", "r.json"]);
        }
        assert!(is_foreign(&path) && !is_foreign(&second));
    }

    #[test]
    fn targets_with_one_file_do_not_replace_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        std::os::unix::fs::symlink("r.json", folder.path().join("link.json")).unwrap();
        let list = format!("json:{path}/r.json,csv:{path}/./r.json,folded:{path}/link.json");
        for _ in 0..2 {
            let names = ["link.2.json", "link.json", "r.2.json", "r.json"];
            assert_eq!(delivered(folder.path(), &list), names);
        }
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("r.json").starts_with('{') && read("r.2.json").starts_with("function,"));
    }

    /// The test runs itself as a child process, because the report bypasses the test harness's
    /// capture.
    #[test]
    fn stderr_locked_falls_back_to_table() {
        const CHILD: &str = "GPU_TIME_TEST_CHILD";
        let sink = Sink::File(PathPattern::parse("/missing/%p.json", Path::new("/")).unwrap());
        let target = Target { format: Format::Json, sink };
        if std::env::var_os(CHILD).is_some() {
            let (locked, when_locked) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let _lock = std::io::stderr().lock();
                locked.send(()).unwrap();
                std::thread::park();
            });
            when_locked.recv().unwrap();
            let targets = [target.clone(), target];
            return deliver(&snapshot(), &targets, &config(), &no_trace);
        }
        let name = std::thread::current().name().unwrap().to_owned();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", &name]).env(CHILD, "1");
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let line = format!(
            "gpu-time: cannot write the report to `/missing/{}.json`: \
             No such file or directory (os error 2)\n",
            child.id()
        );
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            format!("{line}{line}{}", snapshot())
        );
    }
}
