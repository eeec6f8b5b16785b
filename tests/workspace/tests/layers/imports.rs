//! Determines which files each file of a crate imports, based on its syntax.
//!
//! Paths are followed through modules and re-exports to the file that defines the item. A module that
//! re-exports items of its own submodules does not import them, unless its code uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{ImplItemFn, Item, ItemUse, Macro, UseTree, Visibility};

use crate::modules::{Module, ModulePath, attributes, is_test};

/// The files imported by each file.
pub type Imports = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Returns the files that each file imports.
pub fn imports(modules: &[Module]) -> Imports {
    let mut scopes: Scopes = BTreeMap::new();
    for module in modules {
        scopes.entry(&module.path).or_default().push(Scope::new(module));
    }
    let mut imports = Imports::new();
    for scope in scopes.values().flatten() {
        let mut paths = Paths { scope, found: BTreeSet::new() };
        scope.module.items.iter().for_each(|item| paths.visit_item(item));
        let file = &scope.module.file;
        let found = paths.found.iter().flat_map(|path| files(&scopes, path, 0));
        let imported = imports.entry(file.clone()).or_default();
        imported.extend(found.filter(|other| other != file).map(Path::to_owned));
    }
    imports
}

/// Modules by path. A `cfg` may choose between inline modules with the same path.
type Scopes<'a> = BTreeMap<&'a [String], Vec<Scope<'a>>>;

/// A module with the names that it imports, by their paths from the crate's root. The paths of
/// other crates' items start with the module's own path, so they resolve to this module.
struct Scope<'a> {
    module: &'a Module,
    names: Vec<(String, ModulePath)>,
    /// Paths imported by `use something::*`.
    globs: Vec<ModulePath>,
}

impl<'a> Scope<'a> {
    fn new(module: &'a Module) -> Scope<'a> {
        let mut scope = Scope { module, names: Vec::new(), globs: Vec::new() };
        for item in &module.items {
            let Item::Use(item) = item else { continue };
            for (path, name) in leaves(item) {
                let path = absolute(&module.path, &path);
                match name {
                    Some(name) => scope.names.push((name, path)),
                    None => scope.globs.push(path),
                }
            }
        }
        scope
    }

    fn defines(&self, name: &str) -> bool {
        self.module.items.iter().any(|item| match item {
            Item::Const(item) => item.ident == name,
            Item::Enum(item) => item.ident == name,
            Item::Fn(item) => item.sig.ident == name,
            Item::Macro(item) => item.ident.as_ref().is_some_and(|ident| ident == name),
            Item::Static(item) => item.ident == name,
            Item::Struct(item) => item.ident == name,
            Item::Trait(item) => item.ident == name,
            Item::Type(item) => item.ident == name,
            Item::Union(item) => item.ident == name,
            _ => false,
        })
    }
}

/// Returns each path that a `use` imports, with the name that it brings into scope, or `None` for `*`.
fn leaves(item: &ItemUse) -> Vec<(ModulePath, Option<String>)> {
    fn add(tree: &UseTree, path: &[String], found: &mut Vec<(ModulePath, Option<String>)>) {
        let joined = |name: &syn::Ident| match name.to_string().as_str() {
            "self" => path.to_vec(),
            name => [path, &[name.to_owned()]].concat(),
        };
        match tree {
            UseTree::Path(tree) => {
                add(&tree.tree, &[path, &[tree.ident.to_string()]].concat(), found)
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| add(tree, path, found)),
            UseTree::Name(name) => {
                let path = joined(&name.ident);
                let name = path.last().cloned();
                found.push((path, name));
            }
            UseTree::Rename(name) => {
                found.push((joined(&name.ident), Some(name.rename.to_string())));
            }
            UseTree::Glob(_) => found.push((path.to_vec(), None)),
        }
    }
    let mut found = Vec::new();
    if item.leading_colon.is_none() {
        add(&item.tree, &[], &mut found);
    }
    found
}

/// Converts a path as written in a module to a path from the crate's root.
fn absolute(module: &[String], path: &[String]) -> ModulePath {
    let mut at = module.to_vec();
    for (i, name) in path.iter().enumerate() {
        match name.as_str() {
            "crate" => at.clear(),
            "super" => _ = at.pop(),
            "self" => {}
            _ => return [&at, &path[i..]].concat(),
        }
    }
    at
}

/// The limit for chains of re-exports, which may be circular.
const MOST_REEXPORTS: usize = 8;

/// Returns the files that define the item with this path. If there are none, a macro may have created the
/// item in the path's innermost module.
fn files<'a>(scopes: &'a Scopes, path: &[String], depth: usize) -> Vec<&'a Path> {
    let found = definitions(scopes, path, depth);
    let (module, _) = split(scopes, path);
    // At the root, the path belongs to another crate.
    if !found.is_empty() || module.is_empty() {
        return found;
    }
    scopes[module].iter().map(|scope| scope.module.file.as_path()).collect()
}

/// Returns the files that visibly define the item with this path, following re-exports.
fn definitions<'a>(scopes: &'a Scopes, path: &[String], depth: usize) -> Vec<&'a Path> {
    if depth > MOST_REEXPORTS {
        return Vec::new();
    }
    let (module, rest) = split(scopes, path);
    let mut found = Vec::new();
    for scope in &scopes[module] {
        let Some((name, inner)) = rest.split_first().filter(|(name, _)| !scope.defines(name))
        else {
            found.push(scope.module.file.as_path());
            continue;
        };
        let mut named = scope.names.iter().filter(|(known, _)| known == name).peekable();
        if named.peek().is_some() {
            let targets = named.map(|(_, target)| [target, inner].concat());
            found.extend(targets.flat_map(|target| files(scopes, &target, depth + 1)));
        } else {
            let targets = scope.globs.iter().map(|glob| [glob, rest].concat());
            let others = targets.filter(|target| target != path);
            found.extend(others.flat_map(|target| definitions(scopes, &target, depth + 1)));
        }
    }
    found
}

/// Splits a path into the path of the innermost module and the rest.
fn split<'a>(scopes: &Scopes, path: &'a [String]) -> (&'a [String], &'a [String]) {
    let is_module = |n: &usize| scopes.contains_key(&path[..*n]);
    path.split_at((0..=path.len()).rev().find(is_module).expect("the root is a module"))
}

/// Collects every path in a module that may be an import.
struct Paths<'a> {
    scope: &'a Scope<'a>,
    /// The paths, from the crate's root.
    found: BTreeSet<ModulePath>,
}

impl Paths<'_> {
    fn add(&mut self, path: &[String]) {
        // A lone keyword is a visibility or a receiver.
        if !matches!(path, [name] if matches!(name.as_str(), "crate" | "self" | "super")) {
            self.found.insert(absolute(&self.scope.module.path, path));
        }
    }

    /// Adds the paths in a macro's arguments or definition, where `$crate` counts as `crate`.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is_colon =
            |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ':');
        let mut rest = tokens.as_slice();
        while let Some((token, after)) = rest.split_first() {
            rest = after;
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Ident(name) => {
                    let mut path = vec![name.to_string()];
                    while let [first, second, TokenTree::Ident(name), after @ ..] = rest
                        && is_colon(first)
                        && is_colon(second)
                    {
                        path.push(name.to_string());
                        rest = after;
                    }
                    self.add(&path);
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

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let module = &self.scope.module.path;
        let is_reexport = !matches!(item.vis, Visibility::Inherited);
        let used = leaves(item).into_iter().map(|(path, _)| absolute(module, &path));
        self.found.extend(used.filter(|path| !(is_reexport && path.starts_with(module))));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            self.add(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.add_tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}
