use serde::{Deserialize, Deserializer};

/// Deserializes a key that must be present and may be `null`.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}
