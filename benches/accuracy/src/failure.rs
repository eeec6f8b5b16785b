//! Errors, and cases that cannot run on a machine.

use std::error::Error;

use serde::{Deserialize, Serialize};

pub type Failure = Box<dyn Error>;

/// A case or a tool that this machine lacks the means for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    pub case: String,
    pub why: String,
}
