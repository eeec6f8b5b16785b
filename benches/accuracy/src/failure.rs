//! Errors, and cases that cannot run on a particular machine.

use std::error::Error;

use serde::{Deserialize, Serialize};

pub type Failure = Box<dyn Error>;

/// A case or a tool that cannot run because this machine lacks something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omission {
    pub case: String,
    pub why: String,
}
