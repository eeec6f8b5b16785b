/// A scenario's name, and its program, which receives the arguments that follow the name on the command line.
pub type Scenario = (&'static str, fn(&[String]));
