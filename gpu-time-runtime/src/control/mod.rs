//! The configuration in force, what the program changes in it while it runs, and the budget.

pub(crate) mod active;
pub(crate) mod budget_control;
pub(crate) mod cold_override;
pub(crate) mod configure;
