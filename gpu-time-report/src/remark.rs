//! The attribute's remarks about how it times a function.

use serde::{Deserialize, Serialize};

/// A remark made by the attribute about how it times a function. The macro decides at compile time
/// which remarks apply. The JSON report contains their codes; the table and the page contain their
/// sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remark {
    /// The macro could not parse the body, so it cannot look for launches.
    UnparsedBody,
    /// A launch is in a place where the macro cannot bracket it, so the whole body is timed.
    HiddenLaunch,
    /// Every visible launch is on another stream than the timed one.
    OtherStream,
}

impl Remark {
    /// All remarks, in report order.
    pub const ALL: [Remark; 3] = [Remark::UnparsedBody, Remark::HiddenLaunch, Remark::OtherStream];

    /// Returns the remark's code for the JSON and CSV reports.
    pub fn code(self) -> &'static str {
        match self {
            Remark::UnparsedBody => "unparsed-body",
            Remark::HiddenLaunch => "hidden-launch",
            Remark::OtherStream => "other-stream",
        }
    }

    /// Returns the remark as a clause.
    pub fn sentence(self) -> &'static str {
        match self {
            Remark::UnparsedBody => {
                "the macro could not parse the body, so the whole function is timed (`scope = \"body\"`)"
            }
            Remark::HiddenLaunch => {
                "a launch is in a closure, an async block, a nested item or a macro's arguments, so the \
                 whole function is timed (`scope = \"body\"`)"
            }
            Remark::OtherStream => {
                "a launch on another stream than the timed one is not measured: name its stream with \
                 `stream = …`, or annotate a function of its own"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_code() {
        for remark in Remark::ALL {
            assert_eq!(serde_json::to_value(remark).unwrap(), remark.code());
        }
    }
}
