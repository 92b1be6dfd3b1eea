//! Random choices that a seed repeats.

/// `SplitMix64`: small, and the same everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.number().is_multiple_of(n)
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let index = self.number() % u64::try_from(from.len()).unwrap();
        from[usize::try_from(index).unwrap()].clone()
    }
}
