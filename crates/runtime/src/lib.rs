//! The ground that a process of Larder stands on: time and randomness as arguments, the pool for
//! CPU work in which owners take turns, metrics whose labels are bounded, memory that counts in a
//! limit, and secret keys that rotate. Knows nothing of the protocol.

pub mod clock;
pub mod compute;
pub mod environment;
pub mod held;
pub mod hex;
pub mod histograms;
pub mod in_flight;
pub mod in_span;
pub mod key_ring;
pub mod metric;
pub mod panics;
pub mod random;
pub mod rate;
pub mod spans;
