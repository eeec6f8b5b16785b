//! Headless Chromium for tests and the bench: Debian's `chromium`, with a fresh profile for each
//! page.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// The maximum wait for an answer. A browser that takes longer has hung.
const LIMIT: Duration = Duration::from_secs(120);

/// Switches off background services, and logs the console to stderr.
const FLAGS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
];

/// A script that runs after those of the page, in an async function. It logs the answer to the
/// console as JSON in printable ASCII, which the console does not escape.
const ASK: &str = r#"<script type="module">
let answer;
try { answer = await (async () => { QUESTION })(); } catch (error) { answer = `${error.stack}`; }
const text = JSON.stringify(answer ?? null)
    .replace(/[^ -~]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
console.log(`ANSWER<${text}>ANSWER`);
</script></body>"#;

/// The answer of a script, and the lines that the page logged to the console before it, such as
/// errors.
pub struct Seen {
    pub answer: serde_json::Value,
    pub console: Vec<String>,
}

/// Ends the browser when dropped.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have exited already.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Opens the page in a window of this size and runs a script in it: the body of an async function
/// that returns the answer.
///
/// # Panics
///
/// Panics if Chromium is not installed or does not answer.
pub fn ask(page: &str, [width, height]: [u32; 2], question: &str) -> Seen {
    let page = page.replace("</body>", &ASK.replace("QUESTION", question));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("page.html");
    fs::write(&path, page).expect("the page is written");
    let mut command = Command::new("chromium");
    command
        .args(FLAGS)
        // It leaves files there when it is killed.
        .env("TMPDIR", folder.path())
        .arg(format!("--user-data-dir={}", folder.path().join("user").display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("file://{}", path.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let browser = command.spawn().expect("`chromium` is installed");
    let mut browser = Browser(browser);
    let log = BufReader::new(browser.0.stderr.take().expect("piped"));
    let (lines, said) = mpsc::channel();
    thread::spawn(move || log.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
    let mut console = Vec::new();
    loop {
        let line = said.recv_timeout(LIMIT).unwrap_or_else(|error| panic!("{error}: {console:?}"));
        if !line.contains(":CONSOLE") {
            continue;
        }
        let answer = line.split_once("ANSWER<").and_then(|(_, rest)| rest.split_once(">ANSWER"));
        if let Some((answer, _)) = answer {
            let answer = serde_json::from_str(answer).expect("the answer is JSON");
            return Seen { answer, console };
        }
        console.push(line);
    }
}
