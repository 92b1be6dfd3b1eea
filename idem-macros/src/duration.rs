//! Lengths of time as options write them: `"500ms"`, `"10s"`, `"10m"`, `"24h"`, `"7d"`.

/// Milliseconds; never more than 30 years, as in the runtime, so that no store's clock can overflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Millis(pub(crate) u64);

const MOST: u64 = 30 * 365 * 24 * 60 * 60 * 1000;

impl Millis {
    pub(crate) const SECOND: Self = Self(1000);
    pub(crate) const DAY: Self = Self(24 * 60 * 60 * 1000);

    pub(crate) fn from_secs(seconds: u64) -> Option<Self> {
        Self::scaled(seconds, 1000)
    }

    fn scaled(number: u64, unit: u64) -> Option<Self> {
        number
            .checked_mul(unit)
            .filter(|&millis| millis <= MOST)
            .map(Self)
    }

    /// Reads a whole number and its unit.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        if number.is_empty() {
            return Err(format!(
                "\"{text}\" is no length of time; write a whole number and a unit, as in \"10m\""
            ));
        }
        let unit = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 60 * 60 * 1000,
            "d" => 24 * 60 * 60 * 1000,
            "" => {
                return Err(format!(
                    "\"{text}\" has no unit; write \"{text}s\", or {text} without quotes"
                ));
            }
            other => {
                return Err(format!(
                    "`{}` is no unit; the units are ms, s, m, h and d, as in \"10m\"",
                    other.trim()
                ));
            }
        };
        number
            .parse()
            .ok()
            .and_then(|number| Self::scaled(number, unit))
            .ok_or_else(|| format!("\"{text}\" is more than 30 years"))
    }
}

#[cfg(test)]
mod tests {
    use super::Millis;

    #[test]
    fn each_unit_is_read() {
        for (text, millis) in [
            ("500ms", 500),
            ("7s", 7000),
            ("10m", 600_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(Millis::parse(text), Ok(Millis(millis)));
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_way_out() {
        for (text, says) in [
            ("", "a whole number and a unit"),
            ("m", "a whole number and a unit"),
            ("-5s", "a whole number and a unit"),
            ("10", "has no unit"),
            ("10 m", "is no unit"),
            ("10min", "is no unit"),
            ("1.5h", "is no unit"),
            ("10951d", "more than 30 years"),
            ("18446744073709551615s", "more than 30 years"),
            ("18446744073709551616s", "more than 30 years"),
        ] {
            let reason = Millis::parse(text).unwrap_err();
            assert!(reason.contains(says), "{text}: {reason}");
        }
    }
}
