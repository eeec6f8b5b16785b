//! The keys of the attribute, with and without the feature `enabled`, and the messages about them.
//!
//! Imports nothing, because without the feature the macro has no dependencies.

/// A key of the attribute.
pub struct Key {
    pub name: &'static str,
    /// Its accepted forms, for messages.
    pub example: &'static str,
    pub arity: Arity,
}

/// The number of values that a key has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    None,
    /// The key is valid with and without a value.
    Optional,
    One,
}

const fn key(name: &'static str, arity: Arity, example: &'static str) -> Key {
    Key { name, example, arity }
}

/// All keys, in the order in which messages list them.
const KEYS: [Key; 17] = [
    key("stream", Arity::One, "`stream = EXPR`"),
    key("name", Arity::One, "`name = \"…\"`"),
    key("warmup", Arity::One, "`warmup = 10`"),
    key("sample", Arity::One, "`sample = 0.01`"),
    key("every", Arity::One, "`every = 100`"),
    key("cold", Arity::Optional, "`cold` or `cold = \"dirty\"`"),
    key("sleep", Arity::Optional, "`sleep` or `sleep = \"50us\"`"),
    key("graph", Arity::None, "`graph`"),
    key("scope", Arity::One, "`scope = \"launches\"` or `scope = \"body\"`"),
    key("launch", Arity::One, "`launch = \"gemm\"` or `launch = [\"gemm\", \"conv\"]`"),
    key(
        "clock",
        Arity::One,
        "`clock = \"events\"`, `clock = \"sync\"`, `clock = \"host\"` or `clock = \"kernels\"`",
    ),
    key("key", Arity::One, "`key = EXPR`"),
    key("bytes", Arity::One, "`bytes = EXPR`"),
    key("flops", Arity::One, "`flops = EXPR`"),
    key("helpers", Arity::One, "`helpers = false` or `helpers = true`"),
    key("crate", Arity::One, "`crate = PATH`"),
    key("skip", Arity::None, "`skip`"),
];

impl Key {
    /// Returns the key of this name, or the message for an unknown key.
    pub fn find(name: &str) -> Result<&'static Key, String> {
        KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
            let known = KEYS.map(|key| key.name).join("`, `");
            format!("unknown key `{name}`: expected one of `{known}`")
        })
    }

    /// The message for a key without its value, or with nothing after its `=`.
    pub fn missing_value(&self) -> String {
        match self.arity {
            Arity::None => self.takes_no_value(),
            Arity::Optional => self.expected(),
            Arity::One => format!("`{}` needs a value: {}", self.name, self.example),
        }
    }

    /// The message for a value of the wrong form.
    pub fn expected(&self) -> String {
        format!("expected {}", self.example)
    }

    /// The message for a value of a key that has none.
    pub fn takes_no_value(&self) -> String {
        format!("`{}` takes no value", self.name)
    }

    /// The message for a key that was given before.
    pub fn repeated(&self) -> String {
        format!("`{}` is given twice", self.name)
    }
}
