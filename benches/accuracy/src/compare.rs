//! Runs the other roles in turn and compares their results.

use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::bound::Bound;
use crate::case::{CASES, Case, Pace};
use crate::failure::{Failure, Omission};
use crate::figure::Figure;
use crate::node::{self, NODES};
use crate::ours::{OwnReading, OwnReport};
use crate::rivals::{self, RivalReport};
use crate::table::{Row, Table};
use crate::truth::{TrueSpan, TruthReport};
use crate::{child, cupti, gpu, ncu};

const ROUNDS: usize = 3;
const CALLS: u32 = 200;
const LIMIT: Duration = Duration::from_secs(20);

/// The bound for cold copies, compared with ncu.
const NCU: Bound = Bound::share(0.05);
/// The bound on the host time of `cold` and `sleep`, in excess of their two launches.
const MAX_HOST_NS: f64 = 1_000.0;
/// The bound on the clean flush's device time.
const MAX_FLUSH_NS: f64 = 25_000.0;
/// The bound on the distance from p5 to p95 for `spin_10us`: three event clock steps on an H200.
const MAX_SPREAD_NS: f64 = 96.0;

/// The results from the two processes in a round.
struct Round {
    ours: OwnReport,
    truth: TruthReport,
}

/// Measures and prints the table. Fails if a bound is missed, or if there is a GPU but no CUPTI to
/// compare with.
pub fn run() -> Result<ExitCode, Failure> {
    if !gpu::is_present() {
        println!("no GPU here: nothing was measured");
        return Ok(ExitCode::SUCCESS);
    }
    if !cupti::is_present() {
        println!("{}: nothing was measured", cupti::ABSENT);
        return Ok(ExitCode::FAILURE);
    }
    let folder = tempfile::tempdir()?;
    let rounds = (0..ROUNDS).map(|_| round()).collect::<Result<Vec<_>, _>>()?;
    let calls = CALLS.to_string();
    let tracked: OwnReport = role(&["ours", &calls, "tracked"])?;
    let ncu = ncu::measure(folder.path());
    let rivals = rivals::measure(folder.path());

    let mut table = Table::default();
    for case in CASES {
        table.push(compare(case, &rounds));
    }
    add_nodes(&rounds, &mut table);
    add_spreads_and_costs(&rounds, &mut table);
    add_ncu(&rounds, ncu, &mut table);
    add_unbounded(&rounds, &tracked, rivals, &mut table);

    println!("{}", heading(&rounds[0]));
    print!("{table}");
    let missed = table.missed();
    println!("{missed} bounds missed, {} rows left out", table.left_out());
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn round() -> Result<Round, Failure> {
    let calls = CALLS.to_string();
    let ours: OwnReport = role(&["ours", &calls])?;
    let flush_bytes = ours.device.flush_bytes.ok_or("the report has no `flush_bytes`")?;
    let method = ours.device.flush_method.as_deref().ok_or("no flush was verified")?;
    let truth = role(&["truth", &calls, method, &flush_bytes.to_string()])?;
    Ok(Round { ours, truth })
}

fn role<T: serde::de::DeserializeOwned>(arguments: &[&str]) -> Result<T, Failure> {
    let mut command: Command = child::role(arguments)?;
    let text = child::run(&mut command, LIMIT);
    text.and_then(|text| child::parse(&text)).map_err(|why| format!("{arguments:?}: {why}").into())
}

fn heading(round: &Round) -> String {
    let device = &round.ours.device;
    let ns = |value: Option<f64>| value.map_or("unknown".to_owned(), |ns| format!("{ns:.0} ns"));
    format!(
        "{}, CUDA {}, CUPTI {}: {ROUNDS} rounds of {CALLS} calls; empty pair {}, bias {} ± {} ({}), flush {} {} B",
        device.name,
        device.driver.as_deref().unwrap_or("unknown"),
        round.truth.cupti_version,
        ns(device.floor_ns),
        ns(device.bias_ns),
        ns(device.bias_error_ns),
        device.bias_source.as_deref().unwrap_or("unknown"),
        device.flush_method.as_deref().unwrap_or("unknown"),
        device.flush_bytes.unwrap_or(0),
    )
}

/// Compares the median of a case's medians over the rounds with CUPTI's.
fn compare(case: &Case, rounds: &[Round]) -> Row {
    if let Some(left_out) = rounds.iter().find_map(|round| {
        find(&round.ours.left_out, case.name).or_else(|| find(&round.truth.left_out, case.name))
    }) {
        return Row::left_out(case.name, &left_out.why);
    }
    let readings = readings(case, rounds);
    judge(case, rounds.len(), &readings, truth(case.name, rounds))
}

fn judge(case: &Case, rounds: usize, ours: &[&OwnReading], truth: Option<Figure>) -> Row {
    let nets: Vec<Figure> = ours.iter().filter_map(|reading| reading.net).collect();
    let (Some(net), Some(truth)) = (Figure::over(&nets), truth) else {
        return Row::missed(case.name, "no samples of gpu-time or of CUPTI");
    };
    let sum = |part: fn(&OwnReading) -> u64| ours.iter().map(|reading| part(reading)).sum::<u64>();
    let (timed, fed) = (sum(|reading| reading.timed), sum(|reading| reading.fed));
    let raws: Vec<Figure> = ours.iter().filter_map(|reading| reading.raw).collect();
    let raw = Figure::over(&raws).map_or(0.0, |raw| raw.median / 1e3);
    let row = Row::against(case.name, net, truth, case.bound)
        .note(format!("fed {fed} of {timed}, raw {raw:.3} µs"));
    if case.bound.is_none() {
        return row;
    }
    if nets.len() < rounds {
        return row.fail("a round has no samples");
    }
    // Starved times are only upper bounds, and a few fed samples do not represent the case.
    if ours.iter().any(|reading| 2 * reading.fed < reading.timed) {
        return row.fail("fewer than half of the samples of a round are fed");
    }
    match ours.iter().find(|reading| reading.cache != case.cache) {
        Some(other) => row.fail(&format!("the cache state was {}", other.cache)),
        None => row,
    }
}

/// Adds rows that compare graph nodes with the same launches in a stream, both timed by gpu-time.
fn add_nodes(rounds: &[Round], table: &mut Table) {
    for node in NODES {
        let label = format!("{}, beside {} in a stream", node.name, node.beside);
        let readings = rounds.iter().flat_map(|round| &round.ours.nodes);
        let nets: Vec<Figure> = readings
            .filter(|reading| reading.case == node.name)
            .filter_map(|reading| reading.net)
            .collect();
        table.push(match (Figure::over(&nets), net(node.beside, rounds)) {
            (Some(net), Some(beside)) if nets.len() == rounds.len() => {
                Row::against(&label, net, beside, Some(node::BOUND))
            }
            _ => Row::missed(&label, "a round has no samples"),
        });
    }
}

/// Adds rows for spreads, and for the cost of `cold` and `sleep`.
fn add_spreads_and_costs(rounds: &[Round], table: &mut Table) {
    let or_missed = |label: &str, figure: Option<Figure>, row: &dyn Fn(Figure) -> Row| {
        figure.map_or_else(|| Row::missed(label, "not measured"), row)
    };
    let mut at_most = |label: &str, figures: Vec<Figure>, max: f64| {
        let figure = Figure::over(&figures);
        table.push(or_missed(label, figure, &|figure| Row::at_most(label, figure, max)));
    };
    let spreads = rounds.iter().filter_map(|round| {
        let spin = round.ours.readings.iter().find(|reading| reading.case == "spin_10us")?;
        Figure::of(vec![spin.net?.spread()])
    });
    at_most("spin_10us, from p5 to p95", spreads.collect(), MAX_SPREAD_NS);
    let host = rounds.iter().filter_map(|round| round.ours.host_cost);
    at_most("cold and sleep, host time over their launches", host.collect(), MAX_HOST_NS);
    let flush = rounds.iter().filter_map(|round| round.truth.flush);
    at_most("clean flush, device time by CUPTI", flush.collect(), MAX_FLUSH_NS);
    // The same spin between events recorded without gpu-time. No pair can have a smaller spread.
    let bare: Vec<Figure> = rounds.iter().filter_map(|round| round.ours.bare).collect();
    let spreads: Vec<f64> = bare.iter().map(Figure::spread).collect();
    for (label, figure) in [
        ("spin_10us between bare events, raw", Figure::over(&bare)),
        ("the same, from p5 to p95", Figure::of(spreads)),
    ] {
        table.push(or_missed(label, figure, &|figure| Row::shown(label, figure)));
    }
}

type Durations = Vec<(&'static str, Figure)>;

/// Adds rows that compare cold copies with ncu.
fn add_ncu(rounds: &[Round], ncu: Result<Option<Durations>, Failure>, table: &mut Table) {
    let durations = match ncu {
        Ok(Some(durations)) => durations,
        Ok(None) => return table.push(Row::left_out("ncu", "not installed")),
        Err(why) => return table.push(Row::missed("ncu", &why.to_string())),
    };
    let reference = durations.iter().find(|(name, _)| *name == ncu::REFERENCE);
    let (Some((_, by_ncu)), Some(by_cupti)) = (reference, truth(ncu::REFERENCE, rounds)) else {
        return table.push(Row::missed("ncu", "no samples of the empty kernel"));
    };
    let added_ns = by_ncu.median - by_cupti.median;
    let at = |ns: f64| Figure { median: ns, p5: ns, p95: ns };
    table.push(Row::shown("ncu's addition to an empty kernel", at(added_ns)));
    for (name, duration) in durations.iter().filter(|(name, _)| *name != ncu::REFERENCE) {
        let label = format!("{name}, truth by ncu less its addition");
        let corrected = |ns: f64| ns - added_ns;
        let Figure { median, p5, p95 } = *duration;
        let truth = Figure { median: corrected(median), p5: corrected(p5), p95: corrected(p95) };
        table.push(match net(name, rounds) {
            Some(net) => Row::against(&label, net, truth, Some(NCU)),
            None => Row::missed(&label, "no samples"),
        });
    }
}

/// Adds rows without a bound: gpu-time with cudarc's event tracking on, and other tools.
fn add_unbounded(
    rounds: &[Round],
    tracked: &OwnReport,
    rivals: Result<RivalReport, Failure>,
    table: &mut Table,
) {
    for case in CASES.iter().filter(|case| case.pace == Pace::Single) {
        let reading = tracked.readings.iter().find(|reading| reading.case == case.name);
        let figures = reading.and_then(|reading| reading.net).zip(truth(case.name, rounds));
        if let (Some(reading), Some((net, truth))) = (reading, figures) {
            let note = format!("tracked {} of {}", reading.tracked, reading.timed);
            let label = format!("{}, event tracking on", case.name);
            table.push(Row::against(&label, net, truth, None).note(note));
        }
    }
    let rivals = match rivals {
        Ok(rivals) => rivals,
        Err(why) => return table.push(Row::left_out("other tools", &why.to_string())),
    };
    for reading in rivals.readings {
        let label = format!("{}, by {}", reading.case, reading.tool);
        if let Some(truth) = truth(&reading.case, rounds) {
            table.push(Row::against(&label, reading.figure, truth, None));
        }
    }
    for Omission { case, why } in rivals.left_out {
        table.push(Row::left_out(&format!("other tools: {case}"), &why));
    }
}

fn find<'a>(left_out: &'a [Omission], case: &str) -> Option<&'a Omission> {
    left_out.iter().find(|left_out| left_out.case == case)
}

fn readings<'a>(case: &Case, rounds: &'a [Round]) -> Vec<&'a OwnReading> {
    let of =
        |round: &'a Round| round.ours.readings.iter().find(|reading| reading.case == case.name);
    rounds.iter().filter_map(of).collect()
}

fn net(case: &str, rounds: &[Round]) -> Option<Figure> {
    let readings = rounds.iter().flat_map(|round| &round.ours.readings);
    let nets: Vec<_> =
        readings.filter(|reading| reading.case == case).filter_map(|reading| reading.net).collect();
    Figure::over(&nets)
}

fn truth(case: &str, rounds: &[Round]) -> Option<Figure> {
    let readings = rounds.iter().flat_map(|round| &round.truth.readings);
    let spans = readings.filter(|reading: &&TrueSpan| reading.case == case);
    Figure::over(&spans.map(|reading| reading.span).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(median: f64) -> Figure {
        Figure { median, p5: median, p95: median }
    }

    fn reading(net: f64, fed: u64, cache: &str) -> OwnReading {
        OwnReading {
            case: "unused".to_owned(),
            cache: cache.to_owned(),
            net: Some(at(net)),
            raw: Some(at(net + 2_205.0)),
            timed: 200,
            fed,
            starved: 200 - fed,
            at_floor: 0,
            tracked: 0,
        }
    }

    /// Judges `CASES[0]`: an empty kernel with the cache as found, within 150 ns.
    fn is_missed(ours: &[OwnReading], truth: Option<Figure>) -> bool {
        let ours: Vec<&OwnReading> = ours.iter().collect();
        judge(&CASES[0], 3, &ours, truth).is_missed()
    }

    #[test]
    fn case_holds_if_rounds_are_fed_and_medians_close() {
        let near = [550.0, 690.0, 640.0].map(|net| reading(net, 198, "as-found"));
        assert!(!is_missed(&near, Some(at(545.0))));
        assert!(is_missed(&near, Some(at(400.0))), "too far from the truth");
        assert!(is_missed(&near, None), "no truth");
        assert!(is_missed(&near[..2], Some(at(545.0))), "a round is missing");
        assert!(is_missed(&[], Some(at(545.0))), "no rounds");
    }

    #[test]
    fn case_fails_if_starved_or_cache_state_differs() {
        let mut rounds = [545.0; 3].map(|net| reading(net, 200, "as-found"));
        for (fed, is_enough) in [(0, false), (1, false), (99, false), (100, true)] {
            rounds[1].fed = fed;
            assert_eq!(is_missed(&rounds, Some(at(545.0))), !is_enough, "{fed} of 200 fed");
        }
        let partial = [545.0; 3].map(|net| reading(net, 200, "partial"));
        assert!(is_missed(&partial, Some(at(545.0))));
    }
}
