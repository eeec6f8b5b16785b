//! Reads a setting and writes a constant.

#[derive(serde::Deserialize)]
struct Settings {
    blocks: u32,
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let settings: Settings = serde_json::from_str(r#"{"blocks": 132}"#).expect("valid settings");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    let constant = format!("pub const BLOCKS: u32 = {};", settings.blocks);
    std::fs::write(format!("{out}/blocks.rs"), constant).expect("`OUT_DIR` is writable");
}
