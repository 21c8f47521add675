//! Randomness as an argument, so that ids can be foreseen in tests and nowhere else.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A source of unguessable ids.
#[derive(Clone)]
pub struct Random(Source);

#[derive(Clone)]
enum Source {
    System,
    Counting(Arc<AtomicU64>),
}

impl Random {
    /// A cryptographic generator, seeded by the operating system.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// Ids that count up from one: for tests.
    pub fn counting() -> Self {
        Self(Source::Counting(Arc::new(AtomicU64::new(1))))
    }

    /// 128 random bits in 32 hexadecimal digits.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: going on with
    /// ids that can be guessed would be worse.
    pub fn id(&self) -> String {
        match &self.0 {
            Source::System => {
                // A generator of this thread's, seeded by the operating system again and
                // again: each request has ids, and asking that each time takes longer than
                // much of what else there is to do.
                #[allow(clippy::disallowed_methods, reason = "the one place that asks")]
                let bits: u128 = rand::random();
                hex(bits)
            }
            Source::Counting(next) => hex(next.fetch_add(1, Ordering::Relaxed).into()),
        }
    }
}

/// What `{bits:032x}` gives; made for each request, so without what formatting takes.
fn hex(bits: u128) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; 32];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bits.to_be_bytes()) {
        pair.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
    }
    str::from_utf8(&digits).expect("digits are ASCII").to_owned()
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System => "Random::system",
            Source::Counting(_) => "Random::counting",
        })
    }
}
