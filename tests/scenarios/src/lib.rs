//! Types shared by the random scenario and the test that generates its programs.

pub mod script;
