//! Control of timing at run time: the configuration in force, `configure()`, the budget, overrides.

pub(crate) mod active;
pub(crate) mod budget_control;
pub(crate) mod cold_override;
pub(crate) mod configure;
