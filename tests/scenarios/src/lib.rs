//! What the random scenario and its test share.

pub mod script;
