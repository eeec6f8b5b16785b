/// A program and its name. Its arguments follow the name on the command line.
pub type Scenario = (&'static str, fn(&[String]));
