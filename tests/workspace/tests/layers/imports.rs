//! Determines which files each source file in a crate imports, based on its syntax.
//!
//! Paths are followed through modules and re-exports to the file that defines the item. A re-export
//! does not itself count as an import.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemUse, Macro, Meta, UseTree, Visibility};

/// Source texts by path within the crate's source folder.
pub type Sources = BTreeMap<String, String>;

/// A module path from the crate's root.
type ModulePath = Vec<String>;

/// One file as a module.
struct Module {
    file: String,
    syntax: File,
    /// Names brought into scope by `use`, with their full paths.
    names: BTreeMap<String, ModulePath>,
    /// Paths imported by `use something::*`.
    globs: Vec<ModulePath>,
}

/// Returns the files that each file imports, excluding those imported only for tests.
pub fn imports(sources: &Sources) -> BTreeMap<String, BTreeSet<String>> {
    let modules = parse(sources);
    let mut found = BTreeMap::new();
    for (path, module) in &modules {
        let mut paths = Paths { module: path, names: &module.names, found: Vec::new() };
        paths.visit_file(&module.syntax);
        let files = paths.found.iter().filter_map(|path| definition(&modules, path, 0));
        let imported = files.filter(|file| *file != module.file).collect();
        found.insert(module.file.clone(), imported);
    }
    found
}

fn parse(sources: &Sources) -> BTreeMap<ModulePath, Module> {
    let mut modules = BTreeMap::new();
    for (file, text) in sources {
        let mut syntax = syn::parse_file(text).unwrap_or_else(|e| panic!("{file}: {e}"));
        let path = module_path(file);
        syntax.items.retain(|item| !is_test(attributes(item)));
        let (mut names, mut globs) = (BTreeMap::new(), Vec::new());
        for item in &syntax.items {
            if let Item::Use(item) = item {
                leaves(&item.tree, &mut Vec::new(), &mut |used, name| {
                    let used = absolute(&path, &BTreeMap::new(), used);
                    match name {
                        Some(name) => _ = names.insert(name, used),
                        None => globs.push(used),
                    }
                });
            }
        }
        modules.insert(path, Module { file: file.clone(), syntax, names, globs });
    }
    let tests: Vec<ModulePath> = sources
        .iter()
        .flat_map(|(file, text)| {
            let syntax = syn::parse_file(text).expect("parsed above");
            let path = module_path(file);
            syntax.items.into_iter().filter_map(move |item| match item {
                Item::Mod(module) if is_test(&module.attrs) => {
                    Some([path.clone(), vec![module.ident.to_string()]].concat())
                }
                _ => None,
            })
        })
        .collect();
    modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
    modules
}

/// Returns the module path for a file. `a/b.rs` and `a/b/mod.rs` are both the module `a::b`, and
/// the crate's root has an empty path.
fn module_path(file: &str) -> ModulePath {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    match path {
        "lib" | "main" => Vec::new(),
        path => path.split('/').map(str::to_owned).collect(),
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns `true` for `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            condition == "test" || condition.starts_with("all(test")
        }
        _ => false,
    })
}

/// Calls `found` with each imported path and the name that it brings into scope, or `None` for `*`.
fn leaves(
    tree: &UseTree,
    path: &mut ModulePath,
    found: &mut impl FnMut(&[String], Option<String>),
) {
    match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            leaves(&tree.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, path, found)),
        UseTree::Name(name) if name.ident == "self" => found(path, path.last().cloned()),
        UseTree::Rename(rename) if rename.ident == "self" => {
            found(path, Some(rename.rename.to_string()));
        }
        UseTree::Name(name) => {
            path.push(name.ident.to_string());
            found(path, path.last().cloned());
            path.pop();
        }
        UseTree::Rename(rename) => {
            path.push(rename.ident.to_string());
            found(path, Some(rename.rename.to_string()));
            path.pop();
        }
        UseTree::Glob(_) => found(path, None),
    }
}

/// Converts a path as written in a module to a path from the crate's root.
fn absolute(
    module: &[String],
    names: &BTreeMap<String, ModulePath>,
    path: &[String],
) -> ModulePath {
    let (mut at, mut rest) = (module.to_vec(), path);
    match path.first().map(String::as_str) {
        Some("crate") => return path.get(1..).unwrap_or_default().to_vec(),
        Some("self") => rest = path.get(1..).unwrap_or_default(),
        Some("super") => {
            while let Some((first, others)) = rest.split_first()
                && first == "super"
            {
                at.pop();
                rest = others;
            }
        }
        Some(first) => {
            if let Some(known) = names.get(first) {
                return [known, path.get(1..).unwrap_or_default()].concat();
            }
        }
        None => {}
    }
    at.extend_from_slice(rest);
    at
}

/// Returns the file that defines the item with this path, following any number of re-exports.
fn definition(
    modules: &BTreeMap<ModulePath, Module>,
    path: &[String],
    depth: usize,
) -> Option<String> {
    if depth > 8 {
        return None;
    }
    let longest = (1..=path.len()).rev().find(|n| modules.contains_key(&path[..*n]));
    // Relative paths into other crates, and paths that start with local names, match no module but
    // the root.
    let (at, rest) = path.split_at(longest.unwrap_or(0));
    let module = modules.get(at)?;
    let Some(name) = rest.first() else { return Some(module.file.clone()) };
    if defines(&module.syntax, name) {
        return Some(module.file.clone());
    }
    if let Some(target) = module.names.get(name) {
        let target = [target, rest.get(1..).unwrap_or_default()].concat();
        return definition(modules, &target, depth + 1);
    }
    let through_globs = module.globs.iter().find_map(|glob| {
        let target = [glob.as_slice(), rest].concat();
        (target != path).then(|| definition(modules, &target, depth + 1)).flatten()
    });
    // A macro may have created the item. At the root, the path belongs to another crate.
    through_globs.or_else(|| (!at.is_empty()).then(|| module.file.clone()))
}

fn defines(syntax: &File, name: &str) -> bool {
    syntax.items.iter().any(|item| match item {
        Item::Const(item) => item.ident == name,
        Item::Enum(item) => item.ident == name,
        Item::Fn(item) => item.sig.ident == name,
        Item::Macro(item) => item.ident.as_ref().is_some_and(|ident| ident == name),
        Item::Mod(item) => item.ident == name && item.content.is_some(),
        Item::Static(item) => item.ident == name,
        Item::Struct(item) => item.ident == name,
        Item::Trait(item) => item.ident == name,
        Item::Type(item) => item.ident == name,
        _ => false,
    })
}

/// Collects every path in a file that may be an import, starting from the crate's root.
struct Paths<'a> {
    module: &'a [String],
    names: &'a BTreeMap<String, ModulePath>,
    found: Vec<ModulePath>,
}

impl Paths<'_> {
    fn add(&mut self, path: &[String]) {
        self.found.push(absolute(self.module, self.names, path));
    }

    /// Adds paths that start with `crate` in a macro's arguments.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Ident(ident) if ident == "crate" => {
                    let is_macro_path = at.checked_sub(1).and_then(|i| tokens.get(i)).is_some_and(
                        |before| matches!(before, TokenTree::Punct(p) if p.as_char() == '$'),
                    );
                    if !is_macro_path {
                        let mut path = vec!["crate".to_owned()];
                        let mut rest = tokens.get(at + 1..).unwrap_or_default();
                        while let [
                            TokenTree::Punct(_),
                            TokenTree::Punct(_),
                            TokenTree::Ident(i),
                            ..,
                        ] = rest
                        {
                            path.push(i.to_string());
                            rest = rest.get(3..).unwrap_or_default();
                        }
                        self.add(&path);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            let mut used = Vec::new();
            leaves(&item.tree, &mut Vec::new(), &mut |path, _| used.push(path.to_vec()));
            used.iter().for_each(|path| self.add(path));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if segments.len() > 1 {
            self.add(&segments);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.add_tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}
