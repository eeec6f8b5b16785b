//! Tests that each type name has a single meaning in its crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Ident, Item};

use crate::modules::{Module, Twin, modules};
use crate::targets;

/// The files that define each type.
type Definitions = BTreeMap<String, Vec<PathBuf>>;

/// Twins of a file, of which a build compiles only one, define the same names.
#[test]
fn no_type_name_has_two_meanings_in_a_crate() {
    let repository = targets::repository();
    let read = |file: &Path| fs::read_to_string(repository.join(file)).ok();
    let is_test = |root: &PathBuf| root.iter().any(|folder| folder == "tests");
    let mut found = BTreeSet::new();
    for root in targets::targets().into_iter().filter(|root| !is_test(root)) {
        for twin in [Twin::Usual, Twin::Other] {
            found.extend(ambiguous(&modules(&root, twin, &read)));
        }
    }
    assert!(found.is_empty(), "types with the same name in one crate: {found:#?}");
}

#[test]
fn planted_ambiguous_name_is_found() {
    let planted = |file: &Path| match file.to_str().unwrap() {
        "lib.rs" => Some(
            "mod a; mod b; #[cfg_attr(not(on), path = \"off.rs\")] mod on;
            #[cfg(test)] mod tests { struct Alone; } type Alone = u8;
            trait Each { type Other; } impl Each for u8 { type Other = u8; }",
        ),
        "a.rs" => Some("pub struct Shared; enum Other {}"),
        "b.rs" => Some("mod inner { pub trait Shared {} }"),
        "on.rs" | "off.rs" => Some("pub struct Twin;"),
        _ => None,
    };
    for twin in [Twin::Usual, Twin::Other] {
        let read = |file: &Path| planted(file).map(str::to_owned);
        let found = ambiguous(&modules(Path::new("lib.rs"), twin, &read));
        assert_eq!(found, ["`Shared` in a.rs, b.rs"]);
    }
}

/// Returns the names that are defined more than once, with their files.
fn ambiguous(modules: &[Module]) -> Vec<String> {
    let mut definitions = Definitions::new();
    for module in modules {
        for name in module.items.iter().filter_map(type_name) {
            definitions.entry(name.to_string()).or_default().push(module.file.clone());
        }
    }
    definitions.retain(|_, files| files.len() > 1);
    let text = |(name, mut files): (String, Vec<PathBuf>)| {
        files.sort();
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        format!("`{name}` in {}", files.join(", "))
    };
    definitions.into_iter().map(text).collect()
}

fn type_name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Enum(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        Item::Union(item) => Some(&item.ident),
        _ => None,
    }
}
