//! Where the values of a RESP stream end, found without keeping them.

/// Bytes kept of a header line or of a command's name; more is never needed to understand it.
const KEPT: usize = 64;

/// One whole value at the outermost level.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Where it ends in the piece that was fed.
    pub(super) end: usize,
    /// Its type byte; of an inline command, its first letter.
    pub(super) kind: u8,
    /// Its first bulk string or, of an inline command, its first word: the name of a command.
    pub(super) head: Vec<u8>,
}

/// Follows one direction of one connection. After bytes that are no RESP (TLS, a replication
/// stream) it finds no frames any more.
#[derive(Debug, Default)]
pub(super) struct Frames {
    state: State,
    /// Values still to come before the outermost one is whole.
    pending: u64,
    line: Vec<u8>,
    kind: u8,
    head: Option<Vec<u8>>,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    #[default]
    Line,
    Bulk {
        left: u64,
        is_head: bool,
    },
    Lost,
}

impl Frames {
    /// Reads on, and gives the frames that end in this piece.
    pub(super) fn feed(&mut self, piece: &[u8]) -> Vec<Frame> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < piece.len() {
            let rest = &piece[at..];
            let (used, value_ends) = match self.state {
                State::Line => self.read_line(rest),
                State::Bulk { left, is_head } => self.read_bulk(rest, left, is_head),
                State::Lost => return found,
            };
            at += used;
            if value_ends && self.pending == 0 {
                let head = self.head.take().unwrap_or_default();
                found.push(Frame {
                    end: at,
                    kind: self.kind,
                    head,
                });
            }
        }
        found
    }

    /// The type byte of the frame that has begun and not ended, if its first byte was seen.
    pub(super) fn begun(&self) -> Option<u8> {
        let inside = self.pending > 0;
        inside
            .then_some(self.kind)
            .or_else(|| self.line.first().copied())
    }

    /// From here on the stream is something else.
    pub(super) fn lose(&mut self) {
        self.state = State::Lost;
        self.pending = 0;
        self.line.clear();
    }

    fn read_line(&mut self, rest: &[u8]) -> (usize, bool) {
        let end = rest.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(rest.len(), |end| end + 1);
        let room = KEPT - self.line.len();
        self.line.extend_from_slice(&rest[..used.min(room)]);
        if end.is_none() {
            return (used, false);
        }
        let line = std::mem::take(&mut self.line);
        (used, self.header(&line))
    }

    /// Understands a whole header line; true when a value ended with it.
    fn header(&mut self, line: &[u8]) -> bool {
        let kind = line[0];
        let outermost = self.pending == 0;
        if outermost {
            self.kind = kind;
            self.pending = 1;
        }
        match kind {
            b'$' | b'=' | b'!' => self.begin_bulk(number(line)),
            b'*' | b'~' | b'>' => self.expect(number(line), 1, 1),
            b'%' => self.expect(number(line), 2, 1),
            // Attributes stand before a value and are none themselves.
            b'|' => self.expect(number(line), 2, 0),
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => self.expect(Some(0), 1, 1),
            _ if outermost && kind.is_ascii_alphabetic() => {
                self.head = line
                    .split(u8::is_ascii_whitespace)
                    .next()
                    .map(<[u8]>::to_vec);
                self.expect(Some(0), 1, 1)
            }
            _ => self.expect(None, 1, 1),
        }
    }

    fn expect(&mut self, count: Option<i64>, values_each: u64, done: u64) -> bool {
        let Some(count) = count else {
            self.lose();
            return false;
        };
        let more = u64::try_from(count)
            .unwrap_or(0)
            .saturating_mul(values_each);
        self.pending = (self.pending - done).saturating_add(more);
        more == 0
    }

    fn begin_bulk(&mut self, length: Option<i64>) -> bool {
        let Some(length) = length else {
            return self.expect(None, 1, 1);
        };
        let Ok(length) = u64::try_from(length) else {
            return self.expect(Some(0), 1, 1);
        };
        let is_head = self.head.is_none();
        if is_head {
            self.head = Some(Vec::new());
        }
        self.state = State::Bulk {
            left: length.saturating_add(2),
            is_head,
        };
        false
    }

    fn read_bulk(&mut self, rest: &[u8], left: u64, is_head: bool) -> (usize, bool) {
        let used = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
        if let (true, Some(head)) = (is_head, self.head.as_mut()) {
            let room = KEPT - head.len();
            head.extend(
                rest[..used]
                    .iter()
                    .filter(|byte| !b"\r\n".contains(byte))
                    .take(room),
            );
        }
        let left = left - used as u64;
        if left > 0 {
            self.state = State::Bulk { left, is_head };
            return (used, false);
        }
        self.state = State::Line;
        self.pending -= 1;
        (used, true)
    }
}

/// The number after the type byte.
fn number(line: &[u8]) -> Option<i64> {
    std::str::from_utf8(line.get(1..)?)
        .ok()?
        .trim_end()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(frames: &[Frame]) -> Vec<usize> {
        frames.iter().map(|frame| frame.end).collect()
    }

    #[test]
    fn a_command_is_one_frame_named_by_its_first_part() {
        let found = Frames::default().feed(b"*2\r\n$7\r\nEVALSHA\r\n$2\r\n\r\n\r\n");
        assert_eq!(
            found,
            [Frame {
                end: 25,
                kind: b'*',
                head: b"EVALSHA".to_vec()
            }]
        );
    }

    const VALUES: [&str; 8] = [
        "+OK\r\n",
        "*0\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "%1\r\n+a\r\n*2\r\n:1\r\n_\r\n",
        ">1\r\n$1\r\nx\r\n",
        "|1\r\n+k\r\n:9\r\n#t\r\n",
        "PING a\r\n",
    ];

    #[test]
    fn each_value_is_one_frame() {
        for value in VALUES {
            assert_eq!(
                ends(&Frames::default().feed(value.as_bytes())),
                [value.len()],
                "{value:?}"
            );
        }
    }

    #[test]
    fn pieces_of_one_byte_give_the_same_frames_as_the_whole() {
        let stream = VALUES.concat();
        let whole = Frames::default().feed(stream.as_bytes());
        let mut frames = Frames::default();
        let mut pieces = Vec::new();
        for (at, byte) in stream.bytes().enumerate() {
            let found = frames.feed(&[byte]);
            pieces.extend(found.into_iter().map(|frame| Frame {
                end: at + frame.end,
                ..frame
            }));
        }
        assert_eq!(pieces, whole);
        assert_eq!(whole.len(), VALUES.len());
    }

    #[test]
    fn bytes_that_are_no_resp_end_the_search() {
        let mut frames = Frames::default();
        assert_eq!(ends(&frames.feed(b"+OK\r\n\x16\x03\x01\n+OK\r\n")), [5]);
        assert_eq!(frames.feed(b"+OK\r\n"), []);
    }
}
