//! A fuzz target without a fuzzer: its corpus, and inputs that are made from it.

use std::path::Path;
use std::{env, fs, io, thread};

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
    /// If the directory can not be read, or is empty.
    pub fn over(corpus: &Path, inputs: usize) -> io::Result<Self> {
        let mut files = fs::read_dir(corpus)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()?;
        if files.is_empty() {
            return Err(io::Error::other("a corpus without a file"));
        }
        files.sort();
        let number = |name| env::var(name).ok().and_then(|text| text.parse().ok());
        Ok(Self {
            seed: number("IDEM_SEED").unwrap_or_else(|| fastrand::u64(..)),
            inputs: number("IDEM_INPUTS").map_or(inputs, |number| {
                usize::try_from(number).unwrap_or(usize::MAX)
            }),
            corpus: files.iter().map(fs::read).collect::<io::Result<_>>()?,
        })
    }

    /// Checks `property` with each input.
    ///
    /// # Panics
    /// Where the property does, after printing the seed and the input.
    pub fn run(&self, property: impl Fn(&[u8])) {
        let check = |input: &[u8]| {
            let _named = Named {
                seed: self.seed,
                input,
            };
            property(input);
        };
        self.corpus.iter().for_each(|file| check(file));
        let mut rng = Rng::with_seed(self.seed);
        for _ in 0..self.inputs {
            check(&self.draw(&mut rng));
        }
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
