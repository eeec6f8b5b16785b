//! Student's t distribution.

/// The maximum number of degrees of freedom. With more, the distribution is practically normal.
const NORMAL: f64 = 1e6;

/// Returns the probability that a variable with this distribution is at least as far from zero as
/// `t`, on either side. With infinitely many degrees of freedom, the distribution is the normal
/// one.
pub fn two_sided_p(t: f64, degrees: f64) -> f64 {
    let degrees = degrees.min(NORMAL);
    if degrees <= 0.0 || degrees.is_nan() || t.is_nan() {
        return 1.0;
    }
    let square = t * t;
    if square.is_infinite() {
        return 0.0;
    }
    incomplete_beta(degrees / (degrees + square), square / (degrees + square), degrees / 2.0, 0.5)
}

/// Returns the distance from zero that a variable with this distribution exceeds, on either side,
/// with probability `p`.
pub fn two_sided_quantile(p: f64, degrees: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided_p(high, degrees) > p {
        low = high;
        high *= 2.0;
        if high > 1e12 {
            return f64::INFINITY;
        }
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if two_sided_p(middle, degrees) > p { low = middle } else { high = middle }
    }
    high
}

/// Returns the regularised incomplete beta function of `x`. The caller passes `1 - x` as `rest`,
/// which it knows without cancellation.
fn incomplete_beta(x: f64, rest: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || rest <= 0.0 {
        return if x <= 0.0 { 0.0 } else { 1.0 };
    }
    let log_beta = ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    let front = (a * x.ln() + b * rest.ln() - log_beta).exp();
    // The continued fraction converges quickly on this side of the mean.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(x, a, b) / a
    } else {
        1.0 - front * beta_fraction(rest, b, a) / b
    }
}

/// Evaluates the continued fraction of the incomplete beta function (Lentz's method).
fn beta_fraction(x: f64, a: f64, b: f64) -> f64 {
    let away_from_zero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

/// Returns the logarithm of the gamma function (Lanczos' approximation, to 15 digits).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let terms = COEFFICIENTS.iter().zip(1..).map(|(c, i)| c / (x + f64::from(i)));
    let sum = 0.999_999_999_999_809_9 + terms.sum::<f64>();
    let t = x + 7.5;
    0.5 * std::f64::consts::TAU.ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_published_tables() {
        for (p, degrees, expected) in [
            (0.05, 1.0, 12.706),
            (0.05, 4.0, 2.776),
            (0.05, 8.0, 2.306),
            (0.05, 30.0, 2.042),
            (0.01, 8.0, 3.355),
            (0.001, 8.0, 5.041),
            (0.05, f64::INFINITY, 1.960),
            (0.0005, f64::INFINITY, 3.481),
        ] {
            let found = two_sided_quantile(p, degrees);
            assert!((found - expected).abs() < 6e-4, "{p}, {degrees}: {found}");
        }
    }

    #[test]
    fn p_is_the_inverse_of_the_quantile() {
        for degrees in [1.0, 2.5, 7.0, 62.0, f64::INFINITY] {
            for p in [0.9, 0.3, 0.05, 1e-4, 1e-9] {
                let found = two_sided_p(two_sided_quantile(p, degrees), degrees);
                assert!((found / p - 1.0).abs() < 1e-6, "{p}, {degrees}: {found}");
            }
        }
    }

    #[test]
    fn p_of_extremes_is_a_probability() {
        assert_eq!(two_sided_p(0.0, 5.0), 1.0);
        assert_eq!(two_sided_p(f64::INFINITY, 5.0), 0.0);
        assert_eq!(two_sided_p(3.0, 0.0), 1.0);
        assert_eq!(two_sided_p(f64::NAN, 5.0), 1.0);
        assert!(two_sided_p(1e200, 3.0) == 0.0);
    }
}
