//! The file with the lengths of kernels.

use gpu_time_report::units::parsed_ns;

/// Returns the lengths in the form of the simulated driver, from lines such as `saxpy = 5us`. `#` begins a comment.
///
/// # Errors
///
/// A message that names the line.
pub fn model(text: &str) -> Result<String, String> {
    let mut model = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let parsed = line.split_once('=').and_then(|(name, time)| {
            let ns = parsed_ns(time.trim()).filter(|ns| (0.0..1e15).contains(ns))?;
            let name = name.trim().trim_matches('"');
            let is_name = !name.is_empty() && !name.contains([',', '.']);
            is_name.then(|| format!("kernel.{name}={}", ns.round() as u64))
        });
        let expected = || {
            format!("line {}: expected a kernel and its time, such as `saxpy = 5us`", number + 1)
        };
        model.push(parsed.ok_or_else(expected)?);
    }
    Ok(model.join(","))
}

#[cfg(test)]
mod tests {
    use super::model;

    #[test]
    fn lines_become_lengths() {
        let text = "# kernels\nsaxpy = 5us\n\n gemm=1.5 ms # largest\n\"copy\" = 7ns\n";
        assert_eq!(model(text).unwrap(), "kernel.saxpy=5000,kernel.gemm=1500000,kernel.copy=7");
        assert_eq!(model("").unwrap(), "");
    }

    #[test]
    fn wrong_line_is_named() {
        for line in ["saxpy", "saxpy = 5", "= 5us", "a, b = 5us", "saxpy = -5us"] {
            assert!(
                model(&format!("ok = 1us\n{line}\n")).unwrap_err().starts_with("line 2: "),
                "{line}"
            );
        }
    }
}
