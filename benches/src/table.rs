//! What was measured, as Markdown, so that it can go into the README as it is.

use crate::rounds::{Contestant, Load, Times, Took};
use crate::sides::Name;

/// The largest ratio of time to the raw loop that is good enough: a first call, a duplicate.
fn targets(load: Load) -> (f64, f64) {
    let first = if load.tasks == 1 { 1.08 } else { 1.12 };
    (first, 1.10)
}

/// One load, in µs. A ratio is the median of the rounds' ratios, not the ratio of two medians: what
/// slowed a round slowed both.
pub(crate) fn times(sides: &[Contestant], load: Load, times: &[Times]) {
    let (first, duplicate) = targets(load);
    println!("### {} calls by {} task(s)\n", load.calls, load.tasks);
    println!("| | first call | × raw | client | server | duplicate | × raw | client | server |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let raw = &times[0];
    for (side, own) in sides.iter().zip(times) {
        println!(
            "| {} | {} | {} |",
            side.name,
            columns(side.name, &own.first, &raw.first, first),
            columns(side.name, &own.duplicate, &raw.duplicate, duplicate),
        );
    }
    println!("| target | | {first:.2} | | | | {duplicate:.2} | | |\n");
}

/// Time, its ratio to the raw loop, and the processor time of both ends, in µs.
fn columns(name: Name, own: &[Took], raw: &[Took], target: f64) -> String {
    let micros = |of: fn(&Took) -> f64| median(own.iter().map(of)) * 1e6;
    let ratio = median(own.iter().zip(raw).map(|(own, raw)| own.wall / raw.wall));
    format!(
        "{:.1} | {ratio:.2}{} | {:.1} | {:.1}",
        micros(|took| took.wall),
        verdict(name, ratio, target),
        micros(|took| took.client),
        micros(|took| took.server),
    )
}

/// What is said behind a number that has a target.
pub(crate) fn verdict(name: Name, value: f64, target: f64) -> &'static str {
    if name.is_ours() && value > target {
        " (missed)"
    } else {
        ""
    }
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    f64::midpoint(low, high)
}
