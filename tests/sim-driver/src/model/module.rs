//! Modules: loading PTX text and looking up its kernels. Nothing is compiled: a kernel that the
//! model does not implement has no effect and a fixed length.

use crate::code::{Code, DriverResult};
use crate::handle::Handle;
use crate::kernels;
use crate::model::Model;
use crate::object::module::{Function, Module, entries};

impl Model {
    /// Loads PTX text. Rejects cubins.
    pub fn module_load(&mut self, image: &str) -> DriverResult<Handle> {
        let context = self.current()?;
        if image.starts_with("\x7fELF") {
            return Err(Code::INVALID_IMAGE);
        }
        if !image.contains(".version") || !image.contains(".target") {
            return Err(Code::INVALID_PTX);
        }
        // Code for a later architecture does not run.
        let target = image.split(".target").nth(1).and_then(|rest| rest.trim_start().get(3..5));
        if target
            .and_then(|sm| sm.parse().ok())
            .is_some_and(|sm: u64| sm > self.constants.compute_capability)
        {
            return Err(Code::INVALID_PTX);
        }
        Ok(self.modules.insert(Module { context, entries: entries(image) }))
    }

    pub fn module_unload(&mut self, module: Handle) -> DriverResult {
        let unloaded = self.modules.remove(module).ok_or(Code::INVALID_HANDLE)?;
        for function in unloaded.entries.into_values().filter_map(|entry| entry.function) {
            self.functions.remove(function);
        }
        self.context(unloaded.context).map(drop)
    }

    pub fn module_function(&mut self, module: Handle, name: &str) -> DriverResult<Handle> {
        let found = self.modules.get_mut(module).ok_or(Code::INVALID_HANDLE)?;
        let context = found.context;
        self.contexts.get(context).ok_or(Code::CONTEXT_IS_DESTROYED)?;
        let entry = found.entries.get_mut(name).ok_or(Code::NOT_FOUND)?;
        let known = kernels::is_known(name, &entry.parameters);
        Ok(*entry.function.get_or_insert_with(|| {
            self.functions.insert(Function { context, module, name: name.into(), known })
        }))
    }

    /// Returns the function. Fails if its module has been unloaded or its context is no longer
    /// alive.
    pub fn function(&mut self, function: Handle) -> DriverResult<&Function> {
        if self.functions.was_removed(function) {
            self.note("use_after_destroy", format!("function {function:#x}"));
        }
        let found = self.functions.get(function).ok_or(Code::INVALID_HANDLE)?;
        self.contexts.get(found.context).ok_or(Code::CONTEXT_IS_DESTROYED)?;
        Ok(found)
    }
}
