//! The random generator as a parameter, so that tests get predictable ids.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// A generator of unguessable ids.
#[derive(Clone)]
pub struct Random(RandomSource);

#[derive(Clone)]
enum RandomSource {
    System,
    Counting(Arc<AtomicU64>),
}

impl Random {
    /// A cryptographic generator, seeded by the operating system.
    pub fn system() -> Self {
        Self(RandomSource::System)
    }

    /// Ids that count up from one, for tests.
    pub fn counting() -> Self {
        Self(RandomSource::Counting(Arc::new(AtomicU64::new(1))))
    }

    /// An id of 128 random bits, as 32 hexadecimal digits.
    ///
    /// # Panics
    /// If the operating system provides no randomness, because guessable ids
    /// would be worse.
    pub fn id(&self) -> String {
        match &self.0 {
            RandomSource::System => {
                // A thread-local generator that the operating system reseeds: a system
                // call per id would dominate the cost of a small request.
                #[allow(clippy::disallowed_methods, reason = "the only source of randomness")]
                let bits: u128 = rand::random();
                hex(bits)
            }
            RandomSource::Counting(next) => hex(next.fetch_add(1, Ordering::Relaxed).into()),
        }
    }

    /// A secret of 256 random bits, as 64 hexadecimal digits.
    ///
    /// # Panics
    /// If [`id`](Self::id) does.
    pub fn secret(&self) -> String {
        self.id() + &self.id()
    }
}

/// Formats as `{bits:032x}` does, but faster, because each request needs an id.
fn hex(bits: u128) -> String {
    // The compiler vectorizes both steps, without a table.
    let bytes = bits.to_be_bytes();
    let mut digits = [0; 32];

    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        (pair[0], pair[1]) = (byte >> 4, byte & 15);
    }
    for digit in &mut digits {
        *digit += if *digit < 10 { b'0' } else { b'a' - 10 };
    }

    str::from_utf8(&digits).expect("digits are ASCII").to_owned()
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            RandomSource::System => "Random::system",
            RandomSource::Counting(_) => "Random::counting",
        })
    }
}
