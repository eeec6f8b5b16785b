//! The command line.

use std::process::exit;

use crate::model::CONTEXT;

const USAGE: &str = "\
usage: candle-llama [--passes N] [--only FUNCTION] [--plain]

  --passes N       decode N tokens, by default 200, at most 4096
  --only FUNCTION  call only this function of the model, N times: embedding, block, norm, attention,
                   mlp or lm_head
  --plain          with timing turned off";

const FUNCTIONS: [&str; 6] = ["embedding", "block", "norm", "attention", "mlp", "lm_head"];

/// The options of a run.
pub struct Arguments {
    pub passes: usize,
    /// One of `FUNCTIONS`; `None` for whole passes.
    pub only: Option<String>,
    pub plain: bool,
}

impl Arguments {
    /// Parses the command line. If it is invalid, prints the usage and exits.
    pub fn from_command_line() -> Arguments {
        let mut parsed = Arguments { passes: 200, only: None, plain: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--plain" => parsed.plain = true,
                "--passes" => match arguments.next().and_then(|passes| passes.parse().ok()) {
                    Some(passes @ 0..=CONTEXT) => parsed.passes = passes,
                    _ => refuse(&format!("`--passes` needs a number up to {CONTEXT}")),
                },
                "--only" => match arguments.next().filter(|name| FUNCTIONS.contains(&&**name)) {
                    Some(function) => parsed.only = Some(function),
                    None => refuse(&format!("`--only` needs one of {}", FUNCTIONS.join(", "))),
                },
                "--help" => {
                    println!("{USAGE}");
                    exit(0);
                }
                _ => refuse(&format!("unknown argument `{argument}`")),
            }
        }
        parsed
    }
}

fn refuse(why: &str) -> ! {
    eprintln!("{why}\n{USAGE}");
    exit(2)
}
