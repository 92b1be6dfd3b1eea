//! A fuzz target without a fuzzer: its corpus, and inputs that are made from it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::str::FromStr;
use std::{env, fs, io, iter, thread};

use fastrand::Rng;

/// What means something to one of the readers.
const TELLING: &[u8] = b"\0\x01\x02\x07\x08\x09\x0f\x10\x20\x40\x7f\x80\xff\n\"%:{}~[].?-0AFaf ";

/// How many changes an input has, at most.
const CHANGES: usize = 5;

/// A bounded run: first the corpus as it is, then inputs with a few changes to one of its files.
#[derive(Debug)]
pub struct Campaign {
    seed: u64,
    inputs: usize,
    corpus: Vec<Vec<u8>>,
}

impl Campaign {
    /// Over the files in the directory `corpus`: `inputs` of them, or as many as `IDEM_INPUTS` says,
    /// from a random seed, or that in `IDEM_SEED`.
    ///
    /// # Errors
    /// If the directory can not be read, or is empty, or one of the two is no number.
    pub fn over(corpus: &Path, inputs: usize) -> io::Result<Self> {
        let mut files = fs::read_dir(corpus)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        if files.is_empty() {
            return Err(io::Error::other("a corpus without a file"));
        }
        files.sort();
        Ok(Self {
            seed: number("IDEM_SEED")?.unwrap_or_else(|| fastrand::u64(..)),
            inputs: number("IDEM_INPUTS")?.unwrap_or(inputs),
            corpus: files.iter().map(fs::read).collect::<io::Result<_>>()?,
        })
    }

    /// Checks `property` with each input.
    ///
    /// # Panics
    /// Where the property does, after printing the seed and the input.
    pub fn run(&self, property: impl Fn(&[u8])) {
        for input in self.inputs() {
            let _named = Named {
                seed: self.seed,
                input: &input,
            };
            property(&input);
        }
    }

    /// Whether `property` panics at one of the inputs with a message that has `about` in it. Any
    /// other panic is passed over: it is not what is looked for.
    pub fn finds(&self, about: &str, property: impl Fn(&[u8])) -> bool {
        self.inputs().any(|input| {
            let end = catch_unwind(AssertUnwindSafe(|| property(&input)));
            end.is_err_and(|panic| message(&*panic).contains(about))
        })
    }

    fn inputs(&self) -> impl Iterator<Item = Vec<u8>> {
        let mut rng = Rng::with_seed(self.seed);
        let drawn = iter::repeat_with(move || self.draw(&mut rng)).take(self.inputs);
        self.corpus.iter().cloned().chain(drawn)
    }

    fn draw(&self, rng: &mut Rng) -> Vec<u8> {
        let mut input = self.file(rng).to_vec();
        for _ in 0..rng.usize(1..=CHANGES) {
            self.change(rng, &mut input);
        }
        input
    }

    fn file(&self, rng: &mut Rng) -> &[u8] {
        &self.corpus[rng.usize(..self.corpus.len())]
    }

    fn change(&self, rng: &mut Rng, input: &mut Vec<u8>) {
        let at = rng.usize(..=input.len());
        match (rng.u8(..7), input.get_mut(at)) {
            (0, Some(byte)) => *byte ^= 1 << rng.u8(..8),
            (1, Some(byte)) => *byte = TELLING[rng.usize(..TELLING.len())],
            (2, _) => input.insert(at, TELLING[rng.usize(..TELLING.len())]),
            (3, _) => input.truncate(at),
            (4, _) => drop(input.drain(some(rng, input.len()))),
            (5, _) => {
                let again = input[some(rng, input.len())].to_vec();
                input.splice(at..at, again);
            }
            _ => {
                let file = self.file(rng);
                let piece = file[some(rng, file.len())].to_vec();
                input.splice(at..at, piece);
            }
        }
    }
}

fn number<N: FromStr>(name: &str) -> io::Result<Option<N>> {
    let Some(text) = env::var_os(name) else {
        return Ok(None);
    };
    let number = text.to_str().and_then(|text| text.parse().ok());
    let invalid = || io::Error::other(format!("{name}={} is no number", text.display()));
    number.map(Some).ok_or_else(invalid)
}

/// What was said by a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let formatted = panic.downcast_ref::<String>().map(String::as_str);
    let plain = || panic.downcast_ref::<&str>().copied();
    formatted.or_else(plain).unwrap_or_default()
}

/// Some of `length` bytes.
fn some(rng: &mut Rng, length: usize) -> std::ops::Range<usize> {
    let (one, other) = (rng.usize(..=length), rng.usize(..=length));
    one.min(other)..one.max(other)
}

/// Says which input it was that made its property panic.
struct Named<'a> {
    seed: u64,
    input: &'a [u8],
}

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!(
                "IDEM_SEED={} with the input b\"{}\"",
                self.seed,
                self.input.escape_ascii()
            );
        }
    }
}
