//! A browser that looks at a page: Debian's `chromium`, with nothing left of earlier runs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// No page takes that long, unless the browser hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// What the browser is asked for beside the page itself: no services of its own, and its console.
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

/// Runs after the scripts of the page, in a function that may wait. The answer goes to the console, as
/// JSON of letters that need no escape there.
const ASK: &str = r#"<script type="module">
let answer;
try { answer = await (async () => { QUESTION })(); } catch (error) { answer = `${error.stack}`; }
const text = JSON.stringify(answer ?? null)
    .replace(/[^ -~]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
console.log(`ANSWER<${text}>ANSWER`);
</script></body>"#;

/// What a script answered, and what the browser wrote to its console before, such as errors.
pub struct Seen {
    pub answer: serde_json::Value,
    pub console: Vec<String>,
}

/// Ends the browser.
struct Browser(Child);

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

/// Opens the page in a window of this size, and asks it by a script: the body of a function.
///
/// # Panics
///
/// There is no Chromium, or it gives no answer.
pub fn ask(page: &str, [width, height]: [u32; 2], question: &str) -> Seen {
    let page = page.replace("</body>", &ASK.replace("QUESTION", question));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("page.html");
    fs::write(&path, page).expect("the page is written");
    let mut command = Command::new("chromium");
    command
        .args(FLAGS)
        .arg(format!("--user-data-dir={}", folder.path().join("user").display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("file://{}", path.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let browser = command.spawn().expect("`chromium` is installed, as `.ci/run` does");
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
