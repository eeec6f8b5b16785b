/// A program and its name. Its arguments are those that follow the name on the command line.
pub type Scenario = (&'static str, fn(&[String]));
