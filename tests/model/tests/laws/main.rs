//! The laws over every history within a bound, and over broken protocols.
//!
//! `IDEM_LONG=1` adds wider bounds: minutes to hours, and many gigabytes.

mod broken;
// The suites' own, by its path: depending on their crate would bring all their servers along.
#[allow(
    dead_code,
    unreachable_pub,
    reason = "shared with the suites, which use all of it"
)]
#[path = "../../../src/long.rs"]
mod long;
mod real;

use idem_model::{Plan, World};
use stateright::{Checker, HasDiscoveries, Model};

/// Which laws fell within `plan`, each with the actions that led there; and how many worlds were
/// looked at. With `steps` no history is followed further.
fn explore(
    plan: Plan,
    threads: usize,
    steps: Option<usize>,
    finish_when: HasDiscoveries,
) -> (Vec<(&'static str, String)>, usize) {
    let checker = plan.checker().threads(threads).finish_when(finish_when);
    let checker = checker.target_max_depth(steps.unwrap_or(0));
    let checker = checker.spawn_bfs().join();
    let fallen = checker.discoveries().into_iter().map(|(law, path)| {
        let world: World = path.last_state().clone();
        let how = format!("{:?}\nends in {world:#?}", path.into_actions());
        (law, how)
    });
    (fallen.collect(), checker.unique_state_count())
}
