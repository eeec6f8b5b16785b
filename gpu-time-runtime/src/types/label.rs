//! Default function names for reports.

/// Returns a readable path from the marker function's type name, without the marker itself,
/// closures and placeholders for generic parameters.
///
/// `app::Net<_>::forward::{{closure}}::marker` becomes `app::Net::forward`.
pub(crate) fn label(marker_path: &str) -> String {
    let path = marker_path.rsplit_once("::").map_or(marker_path, |(function, _)| function);
    let mut path = path.replace("::{{closure}}", "");
    while let Some(shorter) = without_placeholders(&path) {
        path = shorter;
    }
    path
}

/// Removes one generic argument list that consists only of `_`. Returns `None` if there is none.
fn without_placeholders(path: &str) -> Option<String> {
    let (head, list) = path.split_at(path.find("<_")?);
    let (arguments, rest) = list.strip_prefix('<')?.split_once('>')?;
    let head = head.strip_suffix("::").unwrap_or(head);
    arguments.split(',').all(|a| a.trim() == "_").then(|| format!("{head}{rest}"))
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
