//! The frame of a self-contained HTML page.

use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Returns a page that loads nothing, whatever names it contains, and runs only the given script,
/// which comes last.
pub fn page(title: &str, style: &str, script: Option<&str>, body: &Markup) -> String {
    let scripts = if script.is_some() { " script-src 'unsafe-inline';" } else { "" };
    let policy = format!("default-src 'none'; style-src 'unsafe-inline';{scripts} img-src data:");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(policy);
                link rel="icon" href="data:,";
                title { (title) " – gpu-time" }
                style { (PreEscaped(style)) }
            }
            body {
                (body)
                @if let Some(script) = script { script { (PreEscaped(script)) } }
            }
        }
    };
    page.into_string()
}
