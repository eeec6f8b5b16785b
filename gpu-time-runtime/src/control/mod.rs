//! Run-time control of timing: the current configuration, `configure()`, the budget, and overrides.

pub(crate) mod active;
pub(crate) mod budget_control;
pub(crate) mod cold_override;
pub(crate) mod configure;
