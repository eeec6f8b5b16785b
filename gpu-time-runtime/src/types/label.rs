//! The default name of a function in reports.

/// Returns a readable path from the type name of the marker function: without the marker itself, closures,
/// and the placeholders of generic parameters.
///
/// `app::Net<_>::forward::{{closure}}::marker` becomes `app::Net::forward`.
pub(crate) fn label(marker_path: &str) -> String {
    let path = marker_path.rsplit_once("::").map_or(marker_path, |(function, _)| function);
    let path = path.replace("::{{closure}}", "");
    let mut out = path.clone();
    loop {
        let shorter = strip_placeholders(&out);
        if shorter == out {
            return out;
        }
        out = shorter;
    }
}

/// Removes one generic argument list that consists of `_` only.
fn strip_placeholders(path: &str) -> String {
    let Some(open) = path.find("<_") else { return path.to_owned() };
    let tail = path.get(open + 1..).unwrap_or_default();
    let Some(close) = tail.find('>') else { return path.to_owned() };
    let (arguments, rest) = tail.split_at(close);
    if arguments.split(',').all(|a| a.trim() == "_") {
        let head = path.get(..open).unwrap_or_default();
        let head = head.strip_suffix("::").unwrap_or(head);
        return format!("{head}{}", rest.strip_prefix('>').unwrap_or(rest));
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_drops_marker_closures_and_placeholders() {
        assert_eq!(label("app::forward::marker"), "app::forward");
        assert_eq!(label("app::Net<_>::forward::marker"), "app::Net::forward");
        assert_eq!(label("app::Net<_, _>::forward<_>::marker"), "app::Net::forward");
        assert_eq!(label("app::forward::{{closure}}::marker"), "app::forward");
        assert_eq!(
            label("<app::Net as app::Layer>::forward::marker"),
            "<app::Net as app::Layer>::forward"
        );
        assert_eq!(
            label("<app::Net<_> as app::Layer<u8>>::f::marker"),
            "<app::Net as app::Layer<u8>>::f"
        );
    }
}
