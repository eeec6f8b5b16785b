//! The attribute's remarks about how it times a function.

use crate::kinds::named;

named! {
    /// A remark made by the attribute about how it times a function. The macro decides at compile time
    /// which remarks apply. The JSON report contains their names; the table and the page contain their
    /// sentences.
    pub enum Remark {
        /// The macro could not parse the body, so it cannot look for launches.
        UnparsedBody = "unparsed-body",
        /// A launch is in a place where the macro cannot bracket it, so the whole body is timed.
        HiddenLaunch = "hidden-launch",
        /// Every visible launch is on another stream than the timed one.
        OtherStream = "other-stream",
    }
}

impl Remark {
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
    fn json_has_the_name() {
        for remark in Remark::ALL {
            assert_eq!(serde_json::to_value(remark).unwrap(), remark.name());
        }
    }
}
