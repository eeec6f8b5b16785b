//! The sites of spans: one for each `tracing` callsite.

use std::collections::HashMap;
use std::sync::LazyLock;

use tracing_core::{Metadata, callsite::Identifier};

use crate::base::lock::{Mutex, Rank, locked};
use crate::call::spans::kept::KeepDetector;
use crate::site::callsite::CallSite;
use crate::types::attribute::{Clock, ScopeKind, Spec};

/// The site of all spans from one `tracing` callsite.
pub(super) struct SpanSite {
    pub site: CallSite,
    pub kept: KeepDetector,
}

static SITES: LazyLock<Mutex<HashMap<Identifier, &'static SpanSite>>> =
    LazyLock::new(|| Mutex::new(Rank::SpanSites, HashMap::new()));

/// Returns the site of a span. The first span of a callsite creates the site, with this key.
pub(super) fn find(
    span: &'static Metadata<'static>,
    key: Option<&'static str>,
) -> &'static SpanSite {
    let mut sites = locked(&SITES);
    sites.entry(span.callsite()).or_insert_with(|| {
        // Copied, because a plugin may be unloaded together with its strings.
        let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let spec = Spec {
            name: Some(leaked(format!("{}::{}", span.target(), span.name()))),
            file: leaked(span.file().unwrap_or_default().to_owned()),
            line: span.line().unwrap_or_default(),
            is_span: true,
            // A span may be suspended and continue on another thread.
            is_async: true,
            scope: ScopeKind::Body,
            clock: Clock::Kernels,
            options: match key.filter(|key| span.fields().field(key).is_some()) {
                Some(key) => leaked(format!("span, key = {key}")),
                None => "span",
            },
            ..Spec::named("")
        };
        Box::leak(Box::new(SpanSite { site: CallSite::new(spec), kept: KeepDetector::new() }))
    })
}
