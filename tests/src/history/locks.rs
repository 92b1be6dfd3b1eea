//! What a lock promises, as functions of the same kind.

use super::event::{Answer, End};
use super::judge::Law;
use super::known::Call;
use super::laws::{self, History, Judge, Pair};

pub(super) const LAWS: [(Law, Judge); 11] = [
    (Law::ResultHasEffect, laws::result_has_effect),
    (Law::OneBody, laws::one_body),
    (Law::OneHolder, one_holder),
    (Law::FencesGrow, laws::fences_grow),
    (Law::WritesInOrder, writes_in_order),
    (Law::LossIsTold, loss_is_told),
    (Law::ResultAfterCommit, laws::result_after_commit),
    (Law::OwnErrors, laws::own_errors),
    (Law::KnownRefusals, laws::known_refusals),
    (Law::FreeAtLast, laws::free_at_last),
    (Law::Answered, laws::answered),
];

/// Every way in which a holder ends: it has the lock no longer than until then.
const ANY: [End; 4] = [End::Ok, End::Nothing, End::Unknown, End::Dropped];

/// L01, L06, L08: by first leases, however long the holder waited for its own; and by what holders
/// were told. A panic or an error ends the holding (L04), a release by one who has lost it ends
/// nobody else's.
fn one_holder(history: &History<'_>) -> Option<String> {
    let first_lease = history
        .pairs()
        .find(|pair| !pair.was_over(&ANY) && !history.lease_is_over(pair.earlier, pair.begun));
    if let Some(Pair { earlier, later, .. }) = first_lease {
        return Some(format!(
            "{} held it in the first lease of {}",
            later.number, earlier.number
        ));
    }
    let was_told = |pair: &Pair<'_>| pair.earlier.held.iter().any(|asked| pair.begun.at < *asked);
    let Pair { earlier, later, .. } = history.pairs().find(was_told)?;
    Some(format!(
        "{} was told that it holds what {} had got",
        earlier.number, later.number
    ))
}

/// L01, N21: of two holders the later one is the one with the higher fence, and the one that asked
/// when the other had it already.
fn writes_in_order(history: &History<'_>) -> Option<String> {
    let wrote = |call: &Call| call.effects.first().map(|effect| effect.place);
    let is_later = |one: &Call, than: &Call| {
        let [Some((_, fence)), Some((begun, other))] = [one.attempt(), than.attempt()] else {
            return false;
        };
        fence > other || one.invoked.place > begun.place
    };
    for behind in history.calls {
        let overtook = history.calls.iter().find(|later| {
            is_later(later, behind) && wrote(later).is_some() && wrote(later) < wrote(behind)
        });
        if let Some(later) = overtook {
            return Some(format!(
                "{} wrote after {}, a later holder",
                behind.number, later.number
            ));
        }
    }
    None
}

/// L01: who wants to release what another has got is refused.
fn loss_is_told(history: &History<'_>) -> Option<String> {
    let is_untold = |pair: &Pair<'_>| {
        let told = &pair.earlier.returned;
        let is_content = matches!(
            told,
            Some((
                _,
                Answer::Ok {
                    confirmed: true,
                    ..
                }
            ))
        );
        is_content && !pair.was_over(&ANY)
    };
    let Pair { earlier, later, .. } = history.pairs().find(is_untold)?;
    Some(format!(
        "{} released what {} had got, and was not told",
        earlier.number, later.number
    ))
}
