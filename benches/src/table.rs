//! What was measured, as Markdown, so that it can go into the README as it is.

use crate::rounds::{Contestant, Load, Times};
use crate::sides::Name;

/// The largest ratio of time to the raw loop that is good enough: a first call, a duplicate.
fn targets(load: Load) -> (f64, f64) {
    let first = if load.tasks == 1 { 1.08 } else { 1.12 };
    (first, 1.10)
}

/// One load. A ratio is the median of the rounds' ratios, not the ratio of two medians: what
/// slowed a round slowed both.
pub(crate) fn times(sides: &[Contestant], load: Load, times: &[Times]) {
    let (first, duplicate) = targets(load);
    println!("### {} calls by {} task(s)\n", load.calls, load.tasks);
    println!("| | first call, µs | × raw | duplicate, µs | × raw |");
    println!("|---|---:|---:|---:|---:|");
    let raw = &times[0];
    for (side, own) in sides.iter().zip(times) {
        println!(
            "| {} | {:.2} | {} | {:.2} | {} |",
            side.name,
            median(own.first.clone()) * 1e6,
            ratio(side.name, &own.first, &raw.first, first),
            median(own.duplicate.clone()) * 1e6,
            ratio(side.name, &own.duplicate, &raw.duplicate, duplicate),
        );
    }
    println!("| target | | {first:.2} | | {duplicate:.2} |\n");
}

fn ratio(name: Name, own: &[f64], raw: &[f64], target: f64) -> String {
    let ratio = median(own.iter().zip(raw).map(|(own, raw)| own / raw).collect());
    format!("{ratio:.2}{}", verdict(name, ratio, target))
}

/// What is said behind a number that has a target.
pub(crate) fn verdict(name: Name, value: f64, target: f64) -> &'static str {
    if name.is_ours() && value > target {
        " (missed)"
    } else {
        ""
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
    f64::midpoint(low, high)
}
