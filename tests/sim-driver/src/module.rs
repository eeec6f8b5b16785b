//! Modules: which kernels a PTX text has.

use std::collections::HashMap;
use std::sync::Arc;

use crate::code::{Answer, Code};
use crate::context::ContextRef;
use crate::handle::Handle;
use crate::kernels;
use crate::model::Model;

pub(crate) struct Module {
    context: ContextRef,
    entries: HashMap<String, Entry>,
}

struct Entry {
    parameters: Vec<usize>,
    /// Made when the program first asks for it.
    function: Option<Handle>,
}

#[derive(Clone)]
pub(crate) struct Function {
    pub context: ContextRef,
    pub module: Handle,
    pub name: Arc<str>,
    /// Whether the model knows what it does.
    pub known: bool,
}

/// The kernels in a PTX text, each with the sizes of its parameters.
fn entries(ptx: &str) -> HashMap<String, Entry> {
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

/// The size of a parameter such as `.param .u64 name` or `.param .align 8 .b8 name[16]`.
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

impl Model {
    /// Loads a PTX text.
    pub fn module_load(&mut self, image: &str) -> Answer<Handle> {
        let context = self.current()?;
        if image.starts_with("\x7fELF") {
            return Err(Code::INVALID_IMAGE);
        }
        if !image.contains(".version") || !image.contains(".target") {
            return Err(Code::INVALID_PTX);
        }
        // No device runs code for a later one.
        let target = image.split(".target").nth(1).and_then(|rest| rest.trim_start().get(3..5));
        if target
            .and_then(|sm| sm.parse().ok())
            .is_some_and(|sm: u64| sm > self.constants.compute_capability)
        {
            return Err(Code::INVALID_PTX);
        }
        Ok(self.modules.insert(Module { context, entries: entries(image) }))
    }

    pub fn module_unload(&mut self, module: Handle) -> Answer {
        let unloaded = self.modules.remove(module).ok_or(Code::INVALID_HANDLE)?;
        for function in unloaded.entries.into_values().filter_map(|entry| entry.function) {
            self.functions.remove(function);
        }
        self.context(unloaded.context).map(drop)
    }

    pub fn module_function(&mut self, module: Handle, name: &str) -> Answer<Handle> {
        let found = self.modules.get_mut(module).ok_or(Code::INVALID_HANDLE)?;
        let context = found.context;
        self.contexts.get(context).ok_or(Code::CONTEXT_IS_DESTROYED)?;
        let entry = found.entries.get_mut(name).ok_or(Code::NOT_FOUND)?;
        let known = kernels::is_known(name, &entry.parameters);
        Ok(*entry.function.get_or_insert_with(|| {
            self.functions.insert(Function { context, module, name: name.into(), known })
        }))
    }

    /// The function, whose module must be loaded and whose context must be alive.
    pub fn function(&mut self, function: Handle) -> Answer<&Function> {
        if self.functions.was_removed(function) {
            self.note("use_after_destroy", format!("function {function:#x}"));
        }
        let found = self.functions.get(function).ok_or(Code::INVALID_HANDLE)?;
        self.contexts.get(found.context).ok_or(Code::CONTEXT_IS_DESTROYED)?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_sized() {
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
