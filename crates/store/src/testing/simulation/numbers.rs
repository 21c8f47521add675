//! [`Numbers`], the seeded generator of the simulation.

/// A generator of numbers that depend only on the seed: SplitMix64 (Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators", 2014).
#[derive(Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `end`, which is above 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % end
    }
}

/// Spreads a number over all 64 bits. Different numbers stay different.
pub(super) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
