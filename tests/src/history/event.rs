//! One line of a history.

use anyhow::{Context, Result, bail};

/// Something that a call on a key did or heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The monotonic clock of the machine, in microseconds.
    pub at: u64,
    /// Which call.
    pub call: u64,
    /// What it was.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// The call is about to be made.
    Invoked,
    /// Its body has begun.
    Begun {
        /// The attempt's fence.
        fence: u64,
    },
    /// Its body was told that the checkpoint is passed.
    Passed,
    /// The effect.
    Happened,
    /// What it would have written to has refused it.
    Barred,
    /// It was told that it holds its lock.
    Held {
        /// When it began to ask, on the clock of the histories.
        asked: u64,
    },
    /// Its body is over; written before anybody else can know.
    Ended(End),
    /// It is about to commit its transaction.
    Committing,
    /// Its `recover` looked the effect up.
    Found {
        /// The fence of the attempt that asked.
        fence: u64,
        /// The answer.
        finding: Finding,
    },
    /// The call has returned.
    Returned(Answer),
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With the call's number as its result.
    Ok,
    /// With an error that says that nothing happened.
    Nothing,
    /// With an error, or a panic, that leaves it open what happened.
    Unknown,
    /// It was dropped.
    Dropped,
}

/// What a lookup found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The effect of this call.
    Done(u64),
    /// No effect, and attempts with a lower fence have none from now on.
    NotDone,
}

/// What a caller was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A result: the number of the call whose body made it.
    Ok {
        /// That number.
        value: u64,
        /// Whether the store had heard of it.
        confirmed: bool,
    },
    /// The body's own error.
    Failed,
    /// The guard's error, by its code.
    Refused(String),
    /// The caller did not wait for an answer.
    Dropped,
    /// The body's panic.
    Panicked,
}

/// Stands at the end of each line that was written to its end.
const WHOLE: &str = ".";

impl Event {
    /// As a line, without the line end.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { at, call, what } = self;
        let what = match what {
            What::Invoked => "invoked".to_owned(),
            What::Begun { fence } => format!("begun {fence}"),
            What::Passed => "passed".to_owned(),
            What::Happened => "happened".to_owned(),
            What::Barred => "barred".to_owned(),
            What::Held { asked } => format!("held {asked}"),
            What::Ended(End::Ok) => "ended ok".to_owned(),
            What::Ended(End::Nothing) => "ended nothing".to_owned(),
            What::Ended(End::Unknown) => "ended unknown".to_owned(),
            What::Ended(End::Dropped) => "ended dropped".to_owned(),
            What::Committing => "committing".to_owned(),
            What::Found { fence, finding } => match finding {
                Finding::Done(value) => format!("found {fence} done {value}"),
                Finding::NotDone => format!("found {fence} nothing"),
            },
            What::Returned(answer) => format!("returned {}", answer.words()),
        };
        format!("{at} {call} {what} {WHOLE}")
    }

    /// The event of a line; None if its writer was killed while it wrote.
    ///
    /// # Errors
    /// A whole line that is no event.
    pub fn read(line: &str) -> Result<Option<Self>> {
        let mut words: Vec<&str> = line.split(' ').collect();
        if words.pop() != Some(WHOLE) {
            return Ok(None);
        }
        let [at, call, what @ ..] = words.as_slice() else {
            bail!("no event: {line:?}");
        };
        let what = What::read(what).with_context(|| format!("no event: {line:?}"))?;
        Ok(Some(Self {
            at: at.parse()?,
            call: call.parse()?,
            what,
        }))
    }
}

impl What {
    fn read(words: &[&str]) -> Result<Self> {
        Ok(match words {
            ["invoked"] => Self::Invoked,
            ["begun", fence] => Self::Begun {
                fence: fence.parse()?,
            },
            ["passed"] => Self::Passed,
            ["happened"] => Self::Happened,
            ["barred"] => Self::Barred,
            ["held", asked] => Self::Held {
                asked: asked.parse()?,
            },
            ["ended", "ok"] => Self::Ended(End::Ok),
            ["ended", "nothing"] => Self::Ended(End::Nothing),
            ["ended", "unknown"] => Self::Ended(End::Unknown),
            ["ended", "dropped"] => Self::Ended(End::Dropped),
            ["committing"] => Self::Committing,
            ["found", fence, "done", value] => Self::Found {
                fence: fence.parse()?,
                finding: Finding::Done(value.parse()?),
            },
            ["found", fence, "nothing"] => Self::Found {
                fence: fence.parse()?,
                finding: Finding::NotDone,
            },
            ["returned", answer @ ..] => Self::Returned(Answer::read(answer)?),
            _ => bail!("not understood"),
        })
    }
}

impl Answer {
    fn words(&self) -> String {
        match self {
            Self::Ok { value, confirmed } => {
                let word = if *confirmed { "ok" } else { "unconfirmed" };
                format!("{word} {value}")
            }
            Self::Failed => "failed".to_owned(),
            Self::Refused(code) => format!("refused {code}"),
            Self::Dropped => "dropped".to_owned(),
            Self::Panicked => "panicked".to_owned(),
        }
    }

    fn read(words: &[&str]) -> Result<Self> {
        Ok(match words {
            [word @ ("ok" | "unconfirmed"), value] => Self::Ok {
                value: value.parse()?,
                confirmed: *word == "ok",
            },
            ["failed"] => Self::Failed,
            ["refused", code] => Self::Refused((*code).to_owned()),
            ["dropped"] => Self::Dropped,
            ["panicked"] => Self::Panicked,
            _ => bail!("not understood"),
        })
    }
}
