//! Draws both distributions of a series as SVG.

use gpu_time_report::{Histogram, Series, units};
use maud::{Markup, html};

use crate::compare::change::Pair;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 110.0;
/// The height of the strip with a dot for each run.
const STRIP: f64 = 16.0;
const BINS: usize = 80;
/// The share of the times that the axis leaves out at each end, so that outliers do not compress
/// the rest.
const TAIL: f64 = 0.01;

/// Draws the times of the base and of the new program on one axis. `None` if a side has none.
pub fn draw(pair: &Pair) -> Option<Markup> {
    let [base, new] = pair.series.map(|series| times(series, pair.is_net()));
    if base.is_empty() || new.is_empty() {
        return None;
    }
    let end = |share: f64| {
        [&base, &new].map(|times| times.at_rank((share * times.count() as f64) as u64 + 1))
    };
    let low = end(TAIL).into_iter().fold(f64::MAX, f64::min);
    let high = end(1.0 - TAIL).into_iter().fold(0.0, f64::max);
    let margin = (0.05 * (high - low)).max(0.002 * high).max(1.0);
    let (low, high) = ((low - margin).max(0.0), high + margin);
    let x = |ns: f64| WIDTH * (ns - low) / (high - low);
    let is_shown = |ns: &f64| (low..=high).contains(ns);
    let [base_runs, new_runs] = pair.medians_ns();
    let bottom = HEIGHT + 2.0 * STRIP;
    let label = format!(
        "times of the base and of the new program from {} to {}",
        units::time(low),
        units::time(high)
    );
    Some(html! {
        svg viewBox=(format!("0 0 {WIDTH} {}", bottom + 18.0)) role="img" aria-label=(label) {
            @for (times, runs, class, row) in [(base, base_runs, "base", 0.5), (new, new_runs, "new", 1.5)] {
                path class=(class) d=(outline(&times, low, high)) {}
                @for ns in runs.iter().filter(|ns| is_shown(ns)) {
                    circle class=(class) cx=(point(x(*ns))) cy=(point(HEIGHT + row * STRIP)) r="3.5" {
                        title { "a run: " (units::time(*ns)) }
                    }
                }
            }
            line x1="0" x2=(WIDTH) y1=(bottom) y2=(bottom) {}
            text x="0" y=(bottom + 14.0) { (units::time(low)) }
            text x=(WIDTH / 2.0) y=(bottom + 14.0) text-anchor="middle" { (units::time((low + high) / 2.0)) }
            text x=(WIDTH) y=(bottom + 14.0) text-anchor="end" { (units::time(high)) }
        }
    })
}

/// Returns the times of a series, net ones if both sides have them.
fn times(series: &Series, is_net: bool) -> Histogram {
    let medians = series.raw_ns.as_ref().zip(series.net_ns.filter(|_| is_net));
    let bias = medians.map_or(0.0, |(raw, net)| raw.median - net.median);
    if is_net && !series.net_histogram.is_empty() {
        series.net_histogram.clone()
    } else {
        series.histogram.less(bias)
    }
}

/// Returns the outline of a histogram as a path. The highest bin fills the height.
fn outline(times: &Histogram, low: f64, high: f64) -> String {
    let mut bins = [0u64; BINS];
    for (ns, count) in times.iter() {
        let at = (ns - low) / (high - low) * BINS as f64;
        if at >= 0.0
            && let Some(bin) = bins.get_mut(at as usize)
        {
            *bin = bin.saturating_add(count);
        }
    }
    let most = bins.iter().copied().max().unwrap_or_default().max(1) as f64;
    let mut path = format!("M0,{HEIGHT}");
    for (i, count) in bins.iter().enumerate() {
        let [left, right] = [i, i + 1].map(|edge| point(edge as f64 * WIDTH / BINS as f64));
        let top = point(HEIGHT * (1.0 - *count as f64 / most));
        path += &format!("L{left},{top}L{right},{top}");
    }
    path + &format!("L{WIDTH},{HEIGHT}Z")
}

fn point(at: f64) -> String {
    format!("{at:.1}")
}
