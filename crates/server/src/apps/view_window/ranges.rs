//! Ranges of numbers in buckets and bins, which SQL finds for each value.

use serde_json::Value;

/// Integers in a range up to this have a bin for each.
const SINGLE_BINS: i128 = 60;

/// The lowest and the highest number of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Range {
    Integers { low: i64, high: i64 },
    Reals { low: f64, high: f64 },
}

impl Range {
    /// The range of a minimum and a maximum; `None` without finite numbers.
    pub(super) fn of(low: &Value, high: &Value) -> Option<Self> {
        if let (Some(low), Some(high)) = (low.as_i64(), high.as_i64()) {
            return Some(Self::Integers { low, high });
        }
        let (low, high) = (low.as_f64()?, high.as_f64()?);
        (low.is_finite() && high.is_finite()).then_some(Self::Reals { low, high })
    }

    /// The range of numbers that are not all integers.
    #[allow(clippy::cast_precision_loss, reason = "bins of reals have real edges")]
    pub(super) fn of_reals(self) -> Self {
        match self {
            Self::Integers { low, high } => Self::Reals { low: low as f64, high: high as f64 },
            reals @ Self::Reals { .. } => reals,
        }
    }

    /// The number of the bucket of a value, of `count` buckets of about one width.
    pub(super) fn bucket(self, value: &str, count: u64) -> String {
        let last = count.saturating_sub(1);
        let (offset, range) = match self {
            // A difference beyond the integers of SQL becomes a real number there.
            #[allow(clippy::cast_precision_loss, reason = "the buckets have about one width")]
            Self::Integers { low, high } => {
                (format!("({value} - ({low}))"), (i128::from(high) - i128::from(low)) as f64)
            }
            // Halves, because a difference of two numbers may be infinite.
            Self::Reals { low, high } => {
                let low = low / 2.0;
                (format!("({value} * 0.5 - ({low:?}))"), high / 2.0 - low)
            }
        };

        let factor = small(count) / range;
        if !(factor.is_finite() && factor > 0.0) {
            // GROUP BY takes a plain number for a column.
            return format!("{value} IS NULL");
        }
        format!("min({last}, CAST({offset} * {factor:?} AS INTEGER))")
    }
}

/// The bins of a histogram.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Bins {
    Integers {
        low: i64,
        width: i128,
        count: i128,
    },
    /// The beginning of each bin, and the end of the last one.
    Reals(Vec<f64>),
}

impl Bins {
    /// About as many bins of one width as are wanted.
    pub(super) fn over(range: Range, wanted: u64) -> Self {
        match range {
            Range::Integers { low, high } => {
                let values = i128::from(high) - i128::from(low) + 1;
                let wanted = i128::from(wanted);
                let width = if values <= SINGLE_BINS { 1 } else { (values + wanted - 1) / wanted };
                Self::Integers { low, width, count: (values + width - 1) / width }
            }
            Range::Reals { low, high } => {
                let part = |at: u64| {
                    let share = small(at) / small(wanted);
                    // Two products, because the difference of two numbers may be infinite.
                    (low * (1.0 - share) + high * share).clamp(low, high)
                };
                let mut edges: Vec<_> = (0..wanted).map(part).collect();
                edges.push(high);
                // Between neighbouring numbers there is room for few bins.
                edges.sort_by(f64::total_cmp);
                edges.dedup();
                if edges.len() == 1 {
                    edges.push(high);
                }
                Self::Reals(edges)
            }
        }
    }

    /// The beginning and the end of each bin.
    pub(super) fn edges(&self) -> Vec<(Value, Value)> {
        match self {
            Self::Integers { low, width, count } => {
                let edge = |at: i128| integer(i128::from(*low) + width * at);
                (0..*count).map(|at| (edge(at), edge(at + 1))).collect()
            }
            Self::Reals(edges) => {
                edges.windows(2).map(|edges| (edges[0].into(), edges[1].into())).collect()
            }
        }
    }

    /// The number of the bin of a value, by exactly the edges that [`Bins::edges`] returns: to
    /// multiply by a rounded factor would put some values into the bin before.
    pub(super) fn of(&self, value: &str) -> String {
        match self {
            Self::Integers { low, width, count } => {
                let last = i128::from(*low) + width * count - 1;
                let is_in_sql = last - i128::from(*low) <= i128::from(i64::MAX);
                if is_in_sql {
                    return format!("({value} - ({low})) / {width}");
                }
                let edges = (1..*count).map(|at| (i128::from(*low) + width * at).to_string());
                reached(value, &edges.collect::<Vec<_>>(), 0)
            }
            Self::Reals(edges) => {
                let inner = &edges[1..edges.len() - 1];
                let edges: Vec<_> = inner.iter().map(|edge| format!("{edge:?}")).collect();
                reached(value, &edges, 0)
            }
        }
    }
}

/// How many of the edges, which are in their order, a value has reached, and `before` ones.
fn reached(value: &str, edges: &[String], before: usize) -> String {
    if edges.is_empty() {
        return before.to_string();
    }

    let middle = edges.len() / 2;
    let below = reached(value, &edges[..middle], before);
    let above = reached(value, &edges[middle + 1..], before + middle + 1);
    format!("iif({value} < ({}), {below}, {above})", edges[middle])
}

/// An integer; one that a page would round is text.
pub(super) fn integer(number: i128) -> Value {
    const MAX: u64 = 1 << 53;
    match i64::try_from(number) {
        Ok(small) if small.unsigned_abs() <= MAX => small.into(),
        _ => number.to_string().into(),
    }
}

/// A count of buckets, which are few.
fn small(count: u64) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_of_integers_have_whole_widths_up_to_the_limits() {
        for (low, high, wanted, count, width) in [
            (1, 5, 30, 5, 1),
            (0, 59, 30, 60, 1),
            (0, 60, 30, 21, 3),
            (1, 1_000, 30, 30, 34),
            (7, 7, 4, 1, 1),
            (i64::MAX, i64::MAX, 4, 1, 1),
            (i64::MIN, i64::MAX, 2, 2, 1_i128 << 63),
        ] {
            let bins = Bins::over(Range::Integers { low, high }, wanted);
            assert_eq!(bins, Bins::Integers { low, width, count }, "{low} to {high}");
            assert!(i128::from(low) + width * count > i128::from(high), "{low} to {high}");
        }

        let all = Bins::over(Range::Integers { low: i64::MIN, high: i64::MAX }, 2);
        let edges = all.edges();
        assert_eq!(edges[0].0, "-9223372036854775808");
        assert_eq!(edges[0].1, 0);
        assert_eq!(edges[1].1, "9223372036854775808");
        assert_eq!(all.of("y"), "iif(y < (0), 0, 1)");
    }

    #[test]
    fn bins_of_reals_reach_from_the_lowest_to_the_highest_number() {
        for (low, high, wanted, count) in [
            (0.0, 1.0, 4, 4),
            (-1e308, 1e308, 30, 30),
            (f64::MIN, f64::MAX, 200, 200),
            (1.0, 1.0 + f64::EPSILON, 30, 1),
            (0.0, f64::MIN_POSITIVE, 30, 30),
            (7.5, 7.5, 30, 1),
        ] {
            let Bins::Reals(edges) = Bins::over(Range::Reals { low, high }, wanted) else {
                panic!("bins of reals");
            };
            assert_eq!((edges[0], edges[edges.len() - 1]), (low, high));
            assert_eq!(edges.len() - 1, count, "{edges:?}");
            assert!(edges.is_sorted() && edges.iter().all(|edge| edge.is_finite()));
        }
    }

    #[test]
    fn a_value_is_in_the_bin_whose_edges_are_around_it() {
        let edges = ["10", "20", "30"].map(str::to_owned);
        assert_eq!(
            reached("y", &edges, 0),
            "iif(y < (20), iif(y < (10), 0, 1), iif(y < (30), 2, 3))"
        );
        assert_eq!(reached("y", &[], 0), "0");
    }

    #[test]
    fn buckets_of_any_range_have_a_finite_factor() {
        for range in [
            Range::Integers { low: i64::MIN, high: i64::MAX },
            Range::Integers { low: i64::MAX - 1, high: i64::MAX },
            Range::Reals { low: f64::MIN, high: f64::MAX },
            Range::Reals { low: 1.0, high: 1.0 },
        ] {
            let bucket = range.bucket("x", 400);
            assert!(!bucket.contains("inf") && !bucket.contains("NaN"), "{bucket}");
        }
    }
}
