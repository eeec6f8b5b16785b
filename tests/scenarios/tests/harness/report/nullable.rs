use serde::{Deserialize, Deserializer};

/// Deserializes a key that must be present and may be `null`.
pub fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// Deserializes an error that must be present. `null` stands for an unknown error, which becomes NaN.
pub fn error<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(nullable(from)?.unwrap_or(f64::NAN))
}
