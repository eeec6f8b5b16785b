//! Reads the text table and the text of the call tree by the positions of their columns.

use gpu_time_report::{Detail, Snapshot, Terminal, View, printable};

use super::figure::{Figure, Key, Path, Row, Rows};
use super::report::Report;

/// A column of a text table.
struct Column {
    name: String,
    unit: String,
    start: usize,
    end: usize,
}

/// The text table of functions.
#[derive(Default)]
pub struct Table {
    pub columns: Vec<String>,
    pub rows: Rows,
    /// The sums over the keys of a function, each with the series that follow it.
    pub sums: Vec<(Row, Vec<Key>)>,
    /// The rows beside those of functions, by name.
    pub others: Vec<(String, Row)>,
}

/// Wide enough for every name and every sentence.
fn terminal(view: View) -> Terminal {
    Terminal { columns: Some(10_000), view, ..Terminal::default() }
}

/// Reads the table of functions with all details.
///
/// # Panics
///
/// Panics if a row belongs to no series of the report, or if several do to the same.
pub fn functions(snapshot: &Snapshot, report: &Report, detail: Detail) -> Table {
    let text = snapshot.to_table(terminal(View::Functions), detail);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("function "));
    let mut table = Table::default();
    let Some(header) = lines.next() else { return table };
    let columns = columns(header);
    table.columns = columns.iter().map(|column| column.name.clone()).collect();
    let mut function = None;
    let mut key = None;
    for line in lines.take_while(|line| !line.is_empty()) {
        let cell = |name: &str| columns.iter().find(|c| c.name == name).map(|c| c.cell(line));
        let label = columns[0].cell(line);
        let is_sentence = line.starts_with("    ")
            && (["waits for the CPU", "per call: "].iter().any(|start| label.starts_with(start))
                || label.split(' ').nth(1).is_some_and(|word| word.starts_with("recorded")));
        let is_kernel = line.starts_with("    ")
            && (cell("calls").is_some_and(|calls| calls.starts_with('×'))
                || label.starts_with("and ") && label.ends_with(" more"));
        if is_sentence || is_kernel {
            continue;
        }
        let mut row = Row::default();
        for column in &columns[1..] {
            let text = column.cell(line);
            // Replays are not counted.
            let text = text.trim_start_matches("raw ").trim_start_matches("graph");
            row.set(&column.name, || figure(text, column));
        }
        let here = ["on", "cache"].map(|name| cell(name).unwrap_or_default());
        if !line.starts_with(' ') {
            let Some((at, rest)) = report.named(&label) else {
                table.others.push((label, row));
                continue;
            };
            (function, key) = (Some(at), bracketed(&rest));
            if rest.ends_with(" keys)") {
                table.sums.push((row, Vec::new()));
                continue;
            }
            let headless = rest.ends_with(" captured)") || row.samples.is_none();
            let series = (!headless).then(|| report.head(at, key.as_deref(), &here, &table.rows));
            insert(&mut table.rows, at, series, row, line);
            continue;
        }
        let at = function.unwrap_or_else(|| panic!("no function above: {line}"));
        let is_key = label.starts_with('[') && label.ends_with(']') || label == "(no key)";
        let series = if is_key {
            key = bracketed(&label);
            let series = report.head(at, key.as_deref(), &here, &table.rows);
            table.sums.last_mut().unwrap().1.push((at, Some(series)));
            series
        } else {
            report.launch(at, &label, key.as_deref(), &here, &table.rows)
        };
        insert(&mut table.rows, at, Some(series), row, line);
    }
    table
}

fn insert(rows: &mut Rows, at: usize, series: Option<usize>, row: Row, line: &str) {
    assert!(rows.insert((at, series), row).is_none(), "two rows of one series: {line}");
}

/// Reads the call tree.
pub fn tree(snapshot: &Snapshot) -> Vec<Path> {
    let text = snapshot.to_table(terminal(View::Tree), Detail::Brief);
    let mut lines = text.lines().skip_while(|line| !line.contains(" GPU/call "));
    let Some(header) = lines.next() else { return Vec::new() };
    let columns = columns(header);
    let lines = lines.take_while(|line| !line.is_empty());
    let paths = lines.filter(|line| !line.starts_with("    waits for the CPU: "));
    paths.map(|line| path(line, &columns)).collect()
}

fn path(line: &str, columns: &[Column]) -> Path {
    let names = columns.last().expect("a column of names");
    let indented: String = line.chars().skip(names.start).collect();
    let name = indented.trim_start();
    // Below a few levels, a number stands for the space.
    let (depth, name) = match name.strip_prefix('↳').and_then(|name| name.split_once(' ')) {
        Some((depth, name)) => (depth.parse().expect("a depth"), name),
        None => ((indented.len() - name.len()) / 2, name),
    };
    let name = name.split("  (").next().unwrap_or_default().to_owned();
    let mut row = Row::default();
    for column in &columns[..columns.len() - 1] {
        let text = column.cell(line);
        let (text, error) = text.split_once(" ±").unwrap_or((&text, ""));
        row.set(&column.name, || figure(text, column));
        if column.name == "self" {
            row.own_error = figure(error, column);
        }
    }
    Path { name, depth, row }
}

/// Returns the columns below the titles of a header, which two spaces separate.
fn columns(header: &str) -> Vec<Column> {
    let header: Vec<char> = header.chars().collect();
    let is_space = |at: usize| header.get(at).is_none_or(|c| *c == ' ');
    let mut columns = Vec::new();
    let mut start = None;
    for at in 0..=header.len() {
        match start {
            None if !is_space(at) => start = Some(at),
            Some(from) if is_space(at) && is_space(at + 1) => {
                let title: String = header[from..at].iter().collect();
                let (name, unit) = title.split_once(' ').unwrap_or((&title, ""));
                let (name, unit) = (name.to_owned(), unit.to_owned());
                columns.push(Column { name, unit, start: from, end: at });
                start = None;
            }
            _ => {}
        }
    }
    columns
}

impl Column {
    /// Returns the text of the column in a row, without the space around it.
    fn cell(&self, line: &str) -> String {
        let line: Vec<char> = line.chars().collect();
        let is_space = |at: usize| line.get(at).is_none_or(|c| *c == ' ');
        let is_left = ["function", "key", "on", "cache"].contains(&&*self.name);
        let (mut from, mut to) = (self.start, self.end);
        if is_left {
            // Names are indented.
            while self.start == 0 && is_space(from) && from < line.len() {
                from += 1;
            }
            to = from;
            while !is_space(to) || !is_space(to + 1) {
                to += 1;
            }
        } else if is_space(to - 1) {
            return String::new();
        } else {
            from = to;
            while from > 0 && !(is_space(from - 1) && (from < 2 || is_space(from - 2))) {
                from -= 1;
            }
        }
        line.get(from..to).unwrap_or_default().iter().collect()
    }
}

fn figure(text: &str, column: &Column) -> Option<Figure> {
    Figure::read(text, &column.unit)
}

/// Returns the key in brackets at the beginning of a text.
fn bracketed(text: &str) -> Option<String> {
    let (key, _) = text.trim().strip_prefix('[')?.rsplit_once(']')?;
    Some(printable(key))
}
