//! The name of the JSON schema.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The schema written by this version, and the only one that it can read.
pub const NAME: &str = "gpu-time/1";

/// The `schema` field of a report. A report with a different schema does not deserialize.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schema;

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(NAME)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Schema, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            NAME => Ok(Schema),
            other => Err(de::Error::invalid_value(de::Unexpected::Str(other), &NAME)),
        }
    }
}
