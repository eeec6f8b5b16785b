use super::*;

fn kernel(name: &str, count: u64, total_ns: f64) -> PhaseKernel {
    PhaseKernel { name: name.to_owned(), count, total_ns, ..PhaseKernel::default() }
}

fn coverage(windows: u64, busy: f64, error: Option<f64>) -> Coverage {
    let total_ns = windows as f64 * 20e6;
    let kernels = vec![kernel("a", 10 * windows, 1e6), kernel("b", windows, 2e6)];
    Coverage {
        windows,
        incomplete: 1,
        missed: 0,
        total_ns,
        covered_ns: 0.0,
        busy,
        busy_error: error,
        idle: 1.0 - busy,
        idle_error: error,
        attributed: busy / 2.0,
        attributed_error: error,
        not_annotated_error: error,
        not_timed: 0.0,
        not_timed_error: Some(0.0),
        kernels: PhaseKernel::sorted(kernels, busy * total_ns, total_ns),
    }
}

/// The second process opened three times as many windows in the same time.
#[test]
fn pooled_shares_are_weighted_by_covered_time() {
    let (few, many) = (coverage(10, 0.4, Some(0.03)), coverage(30, 0.8, Some(0.02)));
    let pooled = few.pooled(&many, [5e9, 5e9]);
    assert_eq!((pooled.windows, pooled.incomplete, pooled.total_ns), (40, 2, 800e6));
    assert!((pooled.busy - 0.6).abs() < 1e-12 && (pooled.idle - 0.4).abs() < 1e-12);
    assert!((pooled.attributed - 0.3).abs() < 1e-12);
    let expected = 0.5 * 0.03_f64.hypot(0.02);
    assert!((pooled.busy_error.unwrap() - expected).abs() < 1e-12);
    let b = &pooled.kernels[0];
    assert_eq!((&*b.name, b.count, b.total_ns, b.per_s), ("b", 40, 4e6, 50.0));
    // It ran for 2 of 200 ms and for 2 of 600 ms.
    assert!((b.share - (0.01 + 0.01 / 3.0) / 2.0 / 0.6).abs() < 1e-12, "{b:?}");
    let pooled = few.pooled(&many, [15e9, 5e9]);
    assert!((pooled.busy - 0.5).abs() < 1e-12 && pooled.kernels[0].per_s == 50.0);
}

#[test]
fn pooled_error_is_unknown_if_one_is() {
    let (known, unknown) = (coverage(10, 0.4, Some(0.03)), coverage(2, 0.8, None));
    let pooled = known.pooled(&unknown, [1e9, 1e9]);
    assert_eq!((pooled.busy_error, pooled.attributed_error), (None, None));
    let pooled = known.pooled(&unknown, [1e9, 0.0]);
    assert_eq!((pooled.busy, pooled.busy_error), (0.4, Some(0.03)));
}

#[test]
fn error_of_not_annotated_work_is_pooled() {
    let one = Coverage { not_annotated_error: Some(0.001), ..coverage(10, 0.4, Some(0.03)) };
    let pooled = one.pooled(&one, [1e9, 1e9]).not_annotated_error.unwrap();
    assert!((pooled - 0.0005 * 2_f64.sqrt()).abs() < 1e-12, "{pooled}");
}

#[test]
fn kernels_are_bounded_by_total() {
    let kernel = |i| PhaseKernel { annotated: i < 30, ..kernel(&format!("k{i}"), 1, f64::from(i)) };
    let kernels = PhaseKernel::sorted((0..40).map(kernel).collect(), 100.0, 1e9);
    let mut coverage = Coverage { kernels, ..coverage(1, 0.5, None) };
    coverage.bound_kernels();
    let [of_functions, others] =
        [true, false].map(|is| coverage.kernels.iter().filter(|of| of.annotated == is).count());
    assert_eq!((of_functions, others), (16, 10));
    let largest = &coverage.kernels[0];
    assert_eq!((&*largest.name, largest.share, largest.per_s), ("k39", 0.39, 1.0));
}

#[test]
fn sentence_says_if_there_are_too_few_windows() {
    assert_eq!(
        coverage(40, 0.7, Some(0.005)).sentence("wall time"),
        "busy 70.0 ±0.5%, idle 30.0 ±0.5%, annotated functions 35.0 ±0.5% of wall time (40 phases of 800.0 ms in \
         total, 1 more incomplete)"
    );
    assert!(coverage(2, 0.7, None).sentence("wall time").contains("too few"));
}

#[test]
fn warning_says_if_many_windows_are_in_no_figure() {
    assert_eq!(coverage(2, 0.7, None).warning(), None);
    let some = |windows, error| Coverage { missed: 2, ..coverage(windows, 0.7, error) };
    assert!(
        some(40, Some(0.005)).sentence("wall time").ends_with(", 1 more incomplete, 2 missed)")
    );
    assert_eq!(
        some(40, Some(0.005)).warning().unwrap(),
        "3 of 43 phases are incomplete or missed: the GPU may have been busier or idler in them, for which the \
         errors allow"
    );
    assert!(some(2, None).warning().unwrap().ends_with("idler in them"));
    assert_eq!(some(148, Some(0.005)).warning(), None);
}
