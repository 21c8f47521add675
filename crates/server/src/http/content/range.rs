//! The `Range` header (RFC 9110, 14.2).

use std::ops::Range;

use http::header;

use crate::http::head::{Head, Repeated};

/// The part of content that a request selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selection {
    /// All of it: also for several ranges, other units and what is no range, as the RFC permits.
    Whole,
    /// Not empty.
    Part(Range<u64>),
    /// The range begins after the end.
    Unsatisfiable,
}

/// The part of content of that size that a request selects.
pub(super) fn selection(head: &Head, size: u64) -> Selection {
    let value = match head.only(&header::RANGE) {
        Ok(value) => value.and_then(|value| value.to_str().ok()),
        Err(Repeated) => None,
    };
    value.and_then(|value| parse(value, size)).unwrap_or(Selection::Whole)
}

fn parse(value: &str, size: u64) -> Option<Selection> {
    let (unit, range) = value.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }

    let (first, last) = range.trim().split_once('-')?;
    let range = if first.is_empty() {
        let suffix = number(last)?;
        size.saturating_sub(suffix)..size
    } else {
        let first = number(first)?;
        let end = if last.is_empty() { size } else { number(last)?.saturating_add(1) };
        if !last.is_empty() && end <= first {
            return None;
        }
        first..end.min(size)
    };

    Some(if range.is_empty() { Selection::Unsatisfiable } else { Selection::Part(range) })
}

/// A number of digits only. One that is too large is larger than any content.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selected(value: &str, size: u64) -> Selection {
        selection(&Head::of(&[(header::RANGE, value)]), size)
    }

    #[test]
    fn ranges_are_cut_to_the_content() {
        for (value, range) in [
            ("bytes=0-0", 0..1),
            ("bytes=2-5", 2..6),
            ("BYTES=9-", 9..10),
            ("bytes=9-99999999999999999999999", 9..10),
            ("bytes=-3", 7..10),
            ("bytes=-99999999999999999999999", 0..10),
        ] {
            assert_eq!(selected(value, 10), Selection::Part(range), "{value}");
        }

        for value in ["bytes=10-", "bytes=10-11", "bytes=-0", "bytes=99999999999999999999-"] {
            assert_eq!(selected(value, 10), Selection::Unsatisfiable, "{value}");
        }

        assert_eq!(selected("bytes=0-", 0), Selection::Unsatisfiable);
        assert_eq!(selected("bytes=-1", 0), Selection::Unsatisfiable);
    }

    #[test]
    fn what_is_not_one_range_selects_everything() {
        for value in ["bytes=0-1,3-4", "lines=0-1", "bytes=5-4", "bytes=a-b", "bytes", "bytes=+1-2"]
        {
            assert_eq!(selected(value, 10), Selection::Whole, "{value}");
        }

        assert_eq!(selection(&Head::of(&[]), 10), Selection::Whole);
        let twice = Head::of(&[(header::RANGE, "bytes=0-1"), (header::RANGE, "bytes=0-1")]);
        assert_eq!(selection(&twice, 10), Selection::Whole);
    }

    proptest! {
        #[test]
        fn a_part_is_within_the_content(value in "bytes=[0-9]{0,21}-[0-9]{0,21}", size: u64) {
            if let Selection::Part(range) = selected(&value, size) {
                prop_assert!(range.start < range.end && range.end <= size);
            }
        }
    }
}
