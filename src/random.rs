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
    /// The operating system's generator.
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
                let mut bytes = [0u8; 16];
                #[allow(clippy::disallowed_methods, reason = "the one place that asks")]
                getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
                format!("{:032x}", u128::from_be_bytes(bytes))
            }
            Source::Counting(next) => format!("{:032x}", next.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System => "Random::system",
            Source::Counting(_) => "Random::counting",
        })
    }
}
