//! Tests that each type name has a single meaning in its crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Ident, Item, ItemUse, UseTree, Visibility};

use crate::modules::{Module, Twin, modules};
use crate::targets;

/// The files that define each type, or re-export it from another crate.
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
            trait Each { type Other; } impl Each for u8 { type Other = u8; }
            pub use a::Shared; pub use elsewhere::{Old as New, deep::Foreign, function};
            #[cfg(on)] pub use elsewhere::Other;",
        ),
        "a.rs" => Some("pub struct Shared; enum Other {} use elsewhere::Foreign as Old;"),
        "b.rs" => Some("mod inner { pub trait Shared {} } struct Foreign; struct New;"),
        "on.rs" | "off.rs" => Some("pub struct Twin;"),
        _ => None,
    };
    for twin in [Twin::Usual, Twin::Other] {
        let read = |file: &Path| planted(file).map(str::to_owned);
        let found = ambiguous(&modules(Path::new("lib.rs"), twin, &read));
        assert_eq!(
            found,
            ["`Foreign` in b.rs, lib.rs", "`New` in b.rs, lib.rs", "`Shared` in a.rs, b.rs",]
        );
    }
}

/// Returns the names that are defined or re-exported more than once, with their files.
fn ambiguous(modules: &[Module]) -> Vec<String> {
    let mut definitions = Definitions::new();
    for module in modules {
        let is_own = |first: &Ident| {
            let is_child = |other: &Module| {
                other.path.split_last() == Some((&first.to_string(), &module.path))
            };
            ["crate", "self", "super"].iter().any(|own| first == own)
                || modules.iter().any(is_child)
        };
        let foreign = module.items.iter().flat_map(|item| re_exported(item, &is_own));
        for name in module.items.iter().filter_map(type_name).chain(foreign) {
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

/// Returns the names of the types that an item re-exports from other crates in every build. By the naming
/// convention, they are the names that begin with a capital letter and have a small one.
fn re_exported<'a>(item: &'a Item, is_own: &dyn Fn(&Ident) -> bool) -> Vec<&'a Ident> {
    let mut names = Vec::new();
    if let Item::Use(ItemUse {
        vis: Visibility::Public(_), attrs, tree: UseTree::Path(path), ..
    }) = item
        && !attrs.iter().any(|attribute| attribute.path().is_ident("cfg"))
        && !is_own(&path.ident)
    {
        add_names(&path.tree, &mut names);
    }
    names.retain(|name| {
        let name = name.to_string();
        name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase)
    });
    names
}

fn add_names<'a>(tree: &'a UseTree, names: &mut Vec<&'a Ident>) {
    match tree {
        UseTree::Path(path) => add_names(&path.tree, names),
        UseTree::Name(name) => names.push(&name.ident),
        UseTree::Rename(rename) => names.push(&rename.rename),
        UseTree::Group(group) => group.items.iter().for_each(|tree| add_names(tree, names)),
        UseTree::Glob(_) => {}
    }
}
