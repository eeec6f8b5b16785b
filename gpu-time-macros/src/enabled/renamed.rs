//! Finds the name by which the user's package calls gpu-time, if that is another one.

use std::sync::OnceLock;
use std::{env, fs};

use syn::{Path, parse_str};

/// The name of the package.
const PACKAGE: &str = "gpu-time";

/// Returns the path of gpu-time in the package that is being compiled, if that depends on it under another name. A name
/// from the root of a workspace is not found.
pub fn renamed() -> Option<Path> {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let folder = env::var("CARGO_MANIFEST_DIR").ok()?;
        name_in(&fs::read_to_string(format!("{folder}/Cargo.toml")).ok()?)
    };
    parse_str(&format!("::{}", NAME.get_or_init(read).as_deref()?)).ok()
}

/// Looks for `name = { package = "gpu-time" }`, `name.package = "gpu-time"`, or that line under `[dependencies.name]`.
fn name_in(manifest: &str) -> Option<String> {
    let (mut header, mut is_of_dependencies, mut renamed) = ("", false, None);
    for line in manifest.lines().map(str::trim) {
        let key = line.split(['=', '.']).next().unwrap_or_default().trim();
        if let Some(table) = line.strip_prefix('[') {
            is_of_dependencies = table.contains("dependencies");
            header = table.trim_end_matches(']').rsplit('.').next().unwrap_or_default();
        }
        if !is_of_dependencies {
            // A feature may have the name of the package.
            continue;
        }
        if [key, header].contains(&PACKAGE) {
            return None;
        }
        let without_blanks = line.replace(char::is_whitespace, "");
        if !line.starts_with('#') && without_blanks.contains(&format!("package=\"{PACKAGE}\"")) {
            let name = if key == "package" { header } else { key };
            renamed = Some(name.trim_matches('"').replace('-', "_"));
        }
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::name_in;

    #[test]
    fn other_name_is_found_in_every_notation() {
        for manifest in [
            "[dependencies]\ngpu-timer = { version = \"0.1\", package = \"gpu-time\" }",
            "[dependencies]\ngpu_timer={package=\"gpu-time\",path=\"..\"}",
            "[dependencies.gpu-timer]\nversion = \"0.1\"\npackage = \"gpu-time\"",
            "[dependencies]\ngpu-timer.package = \"gpu-time\"",
            "[features]\ngpu-time = []\n[dependencies]\ngpu-timer.package = \"gpu-time\"",
        ] {
            assert_eq!(name_in(manifest).as_deref(), Some("gpu_timer"), "{manifest}");
        }
    }

    #[test]
    fn own_name_wins() {
        for manifest in [
            "[dependencies]\ngpu-time = \"0.1\"\nother = { package = \"gpu-time\" }",
            "[dependencies]\nother = { package = \"gpu-time-report\" }",
            "[package]\nname = \"gpu-time\"",
            "",
        ] {
            assert_eq!(name_in(manifest), None, "{manifest}");
        }
    }
}
