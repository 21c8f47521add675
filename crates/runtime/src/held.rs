//! Memory that counts in a limit for as long as the bytes in it are in use.

use std::{fmt, sync::Arc};

use bytes::Bytes;

/// Memory that counts in a limit. Dropping it gives all of it back.
pub trait Counted: Send + Sync {
    /// How many bytes count.
    fn bytes(&self) -> usize;

    /// Gives back what counts beyond so many bytes.
    fn shrink(&mut self, bytes: usize);
}

/// The counted memory of one result. Dropping it gives the memory back.
#[derive(Default)]
pub struct Held(Vec<Box<dyn Counted>>);

impl Held {
    /// Adds memory.
    pub fn add(&mut self, memory: Box<dyn Counted>) {
        self.0.push(memory);
    }

    /// Whether nothing counts.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Gives back what counts beyond so many bytes.
    fn shrink(&mut self, bytes: usize) {
        let mut left = bytes;
        self.0.retain_mut(|memory| {
            memory.shrink(left);
            left = left.saturating_sub(memory.bytes());
            memory.bytes() > 0
        });
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: usize = self.0.iter().map(|memory| memory.bytes()).sum();
        f.debug_tuple("Held").field(&bytes).finish()
    }
}

/// Bytes, and the memory in which they count.
#[derive(Debug, Clone)]
pub struct HeldBytes {
    bytes: Bytes,
    held: Arc<Held>,
}

impl HeldBytes {
    /// Bytes that take the place of the result to which the memory belongs. What counts beyond
    /// their length is given back.
    pub fn new(bytes: Bytes, mut held: Held) -> Self {
        held.shrink(bytes.len());
        Self { bytes, held: Arc::new(held) }
    }

    /// A part of the bytes that count in the memory.
    pub fn part(bytes: Bytes, held: &Arc<Held>) -> Self {
        Self { bytes, held: Arc::clone(held) }
    }

    /// The bytes, for a look at them.
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The memory.
    pub fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// The bytes, whose memory counts until the last slice of them is dropped.
    pub fn into_bytes(self) -> Bytes {
        if self.held.is_empty() { self.bytes } else { Bytes::from_owner(self) }
    }

    /// The bytes alone, for a place that counts them by itself.
    pub fn into_uncounted(self) -> Bytes {
        self.bytes
    }
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes that count nowhere.
impl From<Bytes> for HeldBytes {
    fn from(bytes: Bytes) -> Self {
        Self { bytes, held: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Memory of a limit, of which the total is known.
    struct Part(usize, Arc<AtomicUsize>);

    impl Part {
        fn of(bytes: usize, total: &Arc<AtomicUsize>) -> Self {
            total.fetch_add(bytes, Ordering::Relaxed);
            Self(bytes, Arc::clone(total))
        }
    }

    impl Counted for Part {
        fn bytes(&self) -> usize {
            self.0
        }

        fn shrink(&mut self, bytes: usize) {
            let less = self.0.saturating_sub(bytes);
            self.0 -= less;
            self.1.fetch_sub(less, Ordering::Relaxed);
        }
    }

    impl Drop for Part {
        fn drop(&mut self) {
            self.1.fetch_sub(self.0, Ordering::Relaxed);
        }
    }

    #[test]
    fn memory_counts_until_the_last_slice_of_its_bytes_is_dropped() {
        let total = Arc::default();
        let mut held = Held::default();
        held.add(Box::new(Part::of(700, &total)));
        held.add(Box::new(Part::of(500, &total)));

        // The bytes take less than the result that they were made of.
        let mut bytes = HeldBytes::new(Bytes::from(vec![0; 900]), held).into_bytes();
        assert_eq!(total.load(Ordering::Relaxed), 900);

        let last = bytes.split_off(899);
        drop(bytes);
        assert_eq!(total.load(Ordering::Relaxed), 900);
        drop(last);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_place_that_counts_the_bytes_by_itself_gives_the_memory_back() {
        let total = Arc::default();
        let mut held = Held::default();
        held.add(Box::new(Part::of(700, &total)));

        let bytes = HeldBytes::new(Bytes::from(vec![0; 700]), held).into_uncounted();
        assert_eq!((bytes.len(), total.load(Ordering::Relaxed)), (700, 0));
    }
}
