//! Reads the tables of the page by their cells.

use gpu_time_report::Snapshot;

use super::figure::{Figure, Path, Row, Rows};

/// The page's table of functions, and its call tree.
#[derive(Default)]
pub struct Page {
    pub columns: Vec<String>,
    pub rows: Rows,
    /// The rows beside those of functions, by name.
    pub others: Vec<(String, Row)>,
    pub paths: Vec<Path>,
}

/// A cell, with the attributes of its element.
struct Cell<'a> {
    attributes: &'a str,
    content: &'a str,
}

/// Reads both tables.
///
/// # Panics
///
/// Panics if a row lacks cells, or if a figure is not what the page sorts by.
pub fn read(snapshot: &Snapshot) -> Page {
    let html = snapshot.to_html();
    let mut page = Page::default();
    if let Some((_, table)) = html.split_once("<table class=\"rows\">") {
        let (table, _) = table.split_once("</table>").expect("an end");
        let mut rows = elements(table, "tr");
        let columns = columns(&rows.next().expect("a header"));
        for tr in rows {
            let (name, row) = row(&tr, &columns);
            let index = |name| attribute(tr.attributes, name).and_then(|at| at.parse().ok());
            match index("data-site") {
                None => page.others.push((name, row)),
                Some(at) => {
                    let before = page.rows.insert((at, index("data-series")), row);
                    assert!(before.is_none(), "two rows of one series: {}", tr.attributes);
                }
            }
        }
        page.columns = columns.into_iter().map(|(name, _)| name).collect();
    }
    if let Some((_, table)) = html.split_once("<table class=\"tree\"") {
        let (table, _) = table.split_once("</table>").expect("an end");
        let mut rows = elements(table, "tr");
        let columns = columns(&rows.next().expect("a header"));
        page.paths = rows.map(|tr| path(&tr, &columns)).collect();
    }
    page
}

/// Returns the names of the columns, each with its unit.
fn columns(header: &Cell) -> Vec<(String, String)> {
    let column = |th: Cell| {
        let (name, unit) = th.content.split_once("<small>").unwrap_or((th.content, ""));
        let unit = unit.split('<').next().filter(|unit| ["ns", "µs", "ms", "s"].contains(unit));
        (name.trim().to_owned(), unit.unwrap_or_default().to_owned())
    };
    elements(header.content, "th").map(column).collect()
}

/// Returns the name and the figures of a row.
fn row(tr: &Cell, columns: &[(String, String)]) -> (String, Row) {
    let mut row = Row::default();
    let cells: Vec<Cell> = elements(tr.content, "td").collect();
    assert_eq!(cells.len(), columns.len() - 1, "{}", tr.content);
    for (cell, (column, unit)) in cells.iter().zip(&columns[1..]) {
        let content = cell.content.split("</i>").last().unwrap_or_default();
        let (shown, more) = content.split_once('<').unwrap_or((content, ""));
        row.set(column, || {
            let figure = Figure::read(&unescaped(shown).replace("graph", ""), unit)?;
            // The page sorts by it.
            if let Some(value) = attribute(cell.attributes, "data-value") {
                let value = Figure::exact(value.parse().expect("a value"));
                assert!(figure.agrees(&value), "{}", cell.content);
            }
            Some(figure)
        });
        let error = more.split_once('±').and_then(|(_, error)| error.split('<').next());
        if column == "total" {
            row.error = error.and_then(|error| Figure::read(error, ""));
        }
    }
    let name = elements(tr.content, "th").next().expect("a name");
    (unescaped(&without_tags(name.content)), row)
}

fn path(tr: &Cell, columns: &[(String, String)]) -> Path {
    let mut row = Row::default();
    let cells = elements(tr.content, "td").map(|cell| unescaped(cell.content));
    for (text, (column, unit)) in
        cells.zip(&columns[1..]).filter(|(_, (name, _))| name != "remarks")
    {
        let (text, error) = text.split_once(" ±").unwrap_or((&text, ""));
        row.set(column, || Figure::read(text, unit));
        if column == "self" {
            row.own_error = Figure::read(error, unit);
        }
    }
    let (_, depth) = tr.attributes.split_once("--d:").expect("a depth");
    let name = elements(tr.content, "th").next().expect("a name");
    let depth = depth.split('"').next().and_then(|depth| depth.parse().ok()).expect("a depth");
    Path { name: unescaped(name.content), depth, row }
}

/// Returns the elements with this tag. None of them is inside another one.
fn elements<'a>(html: &'a str, tag: &'a str) -> impl Iterator<Item = Cell<'a>> {
    let [open, close] = [format!("<{tag}"), format!("</{tag}>")];
    let mut rest = html;
    std::iter::from_fn(move || {
        loop {
            let (_, from) = rest.split_once(&*open)?;
            rest = from;
            // Not a longer name, such as that of the header.
            if from.starts_with(['>', ' ']) {
                break;
            }
        }
        let (attributes, inside) = rest.split_once('>')?;
        let (content, after) = inside.split_once(&*close)?;
        rest = after;
        Some(Cell { attributes, content })
    })
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = attributes.split_once(&format!("{name}=\""))?;
    value.split('"').next()
}

fn without_tags(html: &str) -> String {
    html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect()
}

fn unescaped(html: &str) -> String {
    html.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
