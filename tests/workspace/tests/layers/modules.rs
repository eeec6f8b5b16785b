//! The modules of a crate, found by following `mod` items from the file of its root.

use std::path::{Path, PathBuf};

use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, ExprLit, Item, ItemMod, Lit, Meta, Token};

/// A module path from the crate's root, which is empty.
pub type ModulePath = Vec<String>;

/// One module, in a file of its own or inline.
pub struct Module {
    pub path: ModulePath,
    pub file: PathBuf,
    /// The items, except modules and those compiled only for tests.
    pub items: Vec<Item>,
}

/// Selects one of two files, for a module with `#[cfg_attr(…, path = "…")]`.
#[derive(Clone, Copy, PartialEq)]
pub enum Twin {
    /// The file in the usual place.
    Usual,
    /// The file in the attribute.
    Other,
}

/// Returns every module of the crate, except those compiled only for tests. `read` returns `None` if a
/// file does not exist.
pub fn modules(root: &Path, twin: Twin, read: &dyn Fn(&Path) -> Option<String>) -> Vec<Module> {
    let mut tree = Tree { twin, read, found: Vec::new() };
    let text = read(root).unwrap_or_else(|| panic!("no file `{}`", root.display()));
    tree.add_file(Vec::new(), root, &text, folder_of(root));
    tree.found
}

struct Tree<'a> {
    twin: Twin,
    read: &'a dyn Fn(&Path) -> Option<String>,
    found: Vec<Module>,
}

impl Tree<'_> {
    /// Adds the module in a file, whose submodules have their files in `folder`.
    fn add_file(&mut self, path: ModulePath, file: &Path, text: &str, folder: &Path) {
        let syntax = syn::parse_file(text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        self.add(path, file, syntax.items, folder);
    }

    fn add(&mut self, path: ModulePath, file: &Path, mut items: Vec<Item>, folder: &Path) {
        items.retain(|item| !is_test(attributes(item)));
        let (submodules, items): (Vec<Item>, _) =
            items.into_iter().partition(|item| matches!(item, Item::Mod(_)));
        for submodule in submodules {
            if let Item::Mod(submodule) = submodule {
                self.add_submodule(&path, file, submodule, folder);
            }
        }
        self.found.push(Module { path, file: file.to_owned(), items });
    }

    fn add_submodule(&mut self, parent: &[String], file: &Path, item: ItemMod, folder: &Path) {
        let name = item.ident.to_string();
        let path = [parent, std::slice::from_ref(&name)].concat();
        if let Some((_, items)) = item.content {
            return self.add(path, file, items, &folder.join(name));
        }
        if let Some(chosen) = self.chosen_file(&item.attrs) {
            let file = folder_of(file).join(chosen);
            let text = (self.read)(&file).unwrap_or_else(|| panic!("no file `{}`", file.display()));
            return self.add_file(path, &file, &text, folder_of(&file));
        }
        let inside = folder.join(&name);
        let usual = [folder.join(format!("{name}.rs")), inside.join("mod.rs")];
        let found = usual.iter().find_map(|file| (self.read)(file).map(|text| (file, text)));
        let (file, text) =
            found.unwrap_or_else(|| panic!("no file for `mod {name};` in {}", file.display()));
        self.add_file(path, file, &text, &inside);
    }

    /// Returns the value of `#[path = "…"]`, or of `#[cfg_attr(…, path = "…")]` for the other twin.
    fn chosen_file(&self, attributes: &[Attribute]) -> Option<String> {
        let metas = attributes.iter().flat_map(|attribute| match &attribute.meta {
            Meta::List(list) if list.path.is_ident("cfg_attr") && self.twin == Twin::Other => list
                .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
                .expect("`cfg_attr` contains attributes")
                .into_iter()
                .collect(),
            meta => vec![meta.clone()],
        });
        let mut paths = metas.filter_map(|meta| match meta {
            Meta::NameValue(meta) if meta.path.is_ident("path") => Some(meta.value),
            _ => None,
        });
        match paths.next()? {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        }
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns `true` for `#[cfg(test)]` and `#[cfg(all(test, …))]`.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test")
        }
        _ => false,
    })
}
