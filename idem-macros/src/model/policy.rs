//! The options that become the policy of the call.

use syn::LitStr;

use crate::args::{Args, Given, Time};
use crate::duration::Millis;
use crate::mistakes::Mistakes;

/// One call on the policy's builder.
pub(crate) enum Setting {
    Time(&'static str, Time),
    Text(&'static str, LitStr),
    Plain(&'static str),
}

/// As many bytes as leave room for readable parts in a key.
const MAX_PREFIX_BYTES: usize = 100;

pub(crate) fn prefix(given: &Given) -> syn::Result<LitStr> {
    let literal = given.string()?;
    let text = literal.value();
    let reason = if text.is_empty() {
        "`prefix` is empty; name the business type, as in \"order:pay\"".to_owned()
    } else if text.len() > MAX_PREFIX_BYTES {
        format!(
            "`prefix` has {} bytes; it may have {MAX_PREFIX_BYTES}",
            text.len()
        )
    } else if let Some(bad) = text.chars().find(|&c| !is_prefix_char(c)) {
        format!(
            "`prefix` can not hold {bad:?}; it is segments of letters, digits, `_`, `.`, `-`, joined by `:`"
        )
    } else if text.split(':').any(str::is_empty) {
        "`prefix` has an empty segment; it is segments joined by single colons, as in \"order:pay\""
            .to_owned()
    } else {
        return Ok(literal.clone());
    };
    Err(given.error(reason))
}

fn is_prefix_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ':')
}

pub(crate) fn settings(args: &Args, is_locked: bool, mistakes: &mut Mistakes) -> Vec<Setting> {
    let mut settings = times(args, is_locked, mistakes);
    let mut plain = words(args, mistakes);
    plain.extend(in_progress(args, mistakes));
    plain.extend(flags(args, mistakes));
    plain.extend(args.recover.as_ref().map(|_| "with_recover"));
    if args.token.is_some() {
        // Whatever the engine does for others.
        plain.extend(["error_on_store_error", "error_on_missing_key"]);
    }
    settings.extend(plain.into_iter().map(Setting::Plain));
    settings.extend(message(args, mistakes).map(|text| Setting::Text("message", text)));
    refuse_forgotten_answer(args, mistakes);
    settings
}

/// What is written wins over the engine, also where it is the usual value.
fn words(args: &Args, mistakes: &mut Mistakes) -> Vec<&'static str> {
    let words = [
        (
            &args.on_duplicate,
            [
                ("replay", "replay_duplicates"),
                ("reject", "reject_duplicates"),
            ],
        ),
        (
            &args.on_abandoned,
            [("hold", "hold_abandoned"), ("rerun", "rerun_abandoned")],
        ),
        (
            &args.on_store_error,
            [
                ("error", "error_on_store_error"),
                ("run", "run_on_store_error"),
            ],
        ),
        (
            &args.on_missing_key,
            [
                ("error", "error_on_missing_key"),
                ("run", "run_on_missing_key"),
            ],
        ),
    ];
    words
        .into_iter()
        .filter_map(|(given, words)| mistakes.keep(given.as_ref()?.word(&words)))
        .collect()
}

fn flags(args: &Args, mistakes: &mut Mistakes) -> Vec<&'static str> {
    [
        (&args.checkpoint, "own_checkpoint"),
        (&args.forget, "forget"),
    ]
    .into_iter()
    .filter(|(given, _)| given.as_ref().and_then(|given| mistakes.keep(given.flag())) == Some(true))
    .map(|(_, name)| name)
    .collect()
}

fn times(args: &Args, is_locked: bool, mistakes: &mut Mistakes) -> Vec<Setting> {
    let mut settings = Vec::new();
    let expire = time(
        args.expire.as_ref(),
        Millis(1),
        "zero would forget the record at once",
        mistakes,
    );
    let lease = time(
        args.lease.as_ref(),
        Millis::SECOND,
        "less than a second would lose a busy process its record",
        mistakes,
    );
    let wait = time(
        args.wait.as_ref(),
        Millis(1),
        if is_locked {
            "for not waiting at all leave it out"
        } else {
            "for not waiting at all write in_progress = \"reject\""
        },
        mistakes,
    );
    if let (Some(Time::Known(expire)), Some(Time::Known(lease)), Some(given)) =
        (&expire, &lease, &args.lease)
        && lease > expire
    {
        mistakes.add(
            given.error(
                "`lease` is longer than `expire`: a record can not outlive its own retention",
            ),
        );
    }
    if let (true, Some(Time::Known(lease)), Some(given)) = (is_locked, &lease, &args.lease)
        && *lease > Millis::DAY
    {
        mistakes.add(given.error("`lease` is at most a day on a lock"));
    }
    for (name, time) in [("expire", expire), ("lease", lease), ("wait", wait)] {
        settings.extend(time.map(|time| Setting::Time(name, time)));
    }
    settings
}

fn time(given: Option<&Given>, least: Millis, why: &str, mistakes: &mut Mistakes) -> Option<Time> {
    let given = given?;
    let time = mistakes.keep(given.time())?;
    if let Time::Known(known) = time
        && known < least
    {
        mistakes.add(given.error(format!("`{}` is too short: {why}", given.name)));
        return None;
    }
    Some(time)
}

/// `wait = …` alone asks for waiting, too.
fn in_progress(args: &Args, mistakes: &mut Mistakes) -> Option<&'static str> {
    const WAIT: &str = "wait_in_progress";
    let Some(given) = &args.in_progress else {
        return args.wait.as_ref().map(|_| WAIT);
    };
    let words = [("reject", "reject_in_progress"), ("wait", WAIT)];
    let meant = mistakes.keep(given.word(&words))?;
    if let Some(wait) = args.wait.as_ref().filter(|_| meant != WAIT) {
        mistakes.at(
            wait.name.span(),
            "`wait` has no use with in_progress = \"reject\"",
        );
    }
    Some(meant)
}

fn message(args: &Args, mistakes: &mut Mistakes) -> Option<LitStr> {
    let given = args.message.as_ref()?;
    let text = mistakes.keep(given.string())?;
    if text.value().trim().is_empty() {
        mistakes
            .add(given.error("`message` is empty; leave the option out for the plain sentence"));
    }
    Some(text.clone())
}

/// A success that leaves nothing answers no duplicate: that would run again. A used token is
/// rejected all the same.
fn refuse_forgotten_answer(args: &Args, mistakes: &mut Mistakes) {
    let Some(forget) = &args.forget else {
        return;
    };
    if forget.flag().ok() != Some(true) {
        return;
    }
    let word = args
        .on_duplicate
        .as_ref()
        .and_then(|given| given.string().ok());
    let why = match word.map(LitStr::value).as_deref() {
        Some("replay") => "`forget` leaves no result that on_duplicate = \"replay\" could give",
        Some("reject") if args.token.is_none() => {
            "`forget` leaves nothing by which on_duplicate = \"reject\" could know a duplicate: it would run again"
        }
        _ => return,
    };
    mistakes.at(forget.name.span(), why);
}
