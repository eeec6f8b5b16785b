//! Modules: the kernels declared in PTX text, with their parameter sizes.

use std::collections::HashMap;
use std::sync::Arc;

use crate::handle::Handle;
use crate::object::context::ContextRef;

/// A loaded module.
pub(crate) struct Module {
    pub context: ContextRef,
    pub entries: HashMap<String, Entry>,
}

/// A kernel declared in a module.
pub(crate) struct Entry {
    pub parameters: Vec<usize>,
    /// Created when the program first looks up the kernel.
    pub function: Option<Handle>,
}

/// `CUfunction`.
#[derive(Clone)]
pub(crate) struct Function {
    pub context: ContextRef,
    pub module: Handle,
    pub name: Arc<str>,
    /// The model implements this kernel.
    pub known: bool,
}

/// Parses the kernels in PTX text, with their parameter sizes.
pub(crate) fn entries(ptx: &str) -> HashMap<String, Entry> {
    let code: String = ptx
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(|line| [line, "\n"])
        .collect();
    code.split(".entry")
        .skip(1)
        .filter_map(|rest| {
            let (name, rest) = rest.split_at(rest.find(['(', '{', '\n'])?);
            let parameters = match rest.strip_prefix('(').and_then(|list| list.split_once(')')) {
                Some((list, _)) => list.split(',').filter_map(size).collect(),
                None => Vec::new(),
            };
            Some((name.trim().to_owned(), Entry { parameters, function: None }))
        })
        .collect()
}

/// Returns a parameter's size. Declarations have the form `.param .u64 name` or
/// `.param .align 8 .b8 name[16]`.
fn size(declaration: &str) -> Option<usize> {
    let mut words = declaration.split_whitespace();
    words.find(|word| *word == ".param")?;
    let element = words.find_map(|word| match word {
        ".u8" | ".s8" | ".b8" => Some(1),
        ".u16" | ".s16" | ".b16" | ".f16" => Some(2),
        ".u32" | ".s32" | ".b32" | ".f32" => Some(4),
        ".u64" | ".s64" | ".b64" | ".f64" => Some(8),
        _ => None,
    })?;
    let count = declaration.split_once('[').and_then(|(_, rest)| rest.split(']').next());
    Some(element * count.map_or(Some(1), |count| count.trim().parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_entries_have_parameter_sizes() {
        let found = entries(
            ".version 8.0\n.target sm_70\n// .entry not_this(\n\
             .visible .entry a(\n\t.param .u32 a_0,\n\t.param .f32 a_1,\n\
             \t.param .u64 .ptr .align 4 a_2,\n\t.param .align 8 .b8 a_3[24]\n)\n{ ret; }\n\
             .entry b()\n{ ret; }\n.entry c\n{ ret; }\n",
        );
        let sizes = |name: &str| found[name].parameters.clone();
        assert_eq!((sizes("a"), sizes("b"), sizes("c")), (vec![4, 4, 8, 24], vec![], vec![]));
        assert_eq!(found.len(), 3);
    }
}
