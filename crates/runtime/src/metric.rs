//! Metrics with labels. A label's value is a [`Label`], which no caller can invent: Prometheus
//! keeps each set of labels for ever.
//!
//! Other code records only metrics without labels by the macros of the crate `metrics`; a test
//! checks that.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    sync::Arc,
};

use metrics::{Counter, Gauge, Histogram, SharedString};
use parking_lot::RwLock;

/// The value of a label, from a bounded set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label(Cow<'static, str>);

impl Label {
    /// The value in place of all names that have no label of their own.
    pub const OTHER: Self = Self(Cow::Borrowed("other"));

    /// A value of the code.
    pub const fn fixed(value: &'static str) -> Self {
        Self(Cow::Borrowed(value))
    }

    /// The status of an HTTP response. Statuses that RFC 9110 does not allow are `other`.
    pub fn status(status: u16) -> Self {
        match status {
            100..=599 => Self(Cow::Owned(status.to_string())),
            _ => Self::OTHER,
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Label> for SharedString {
    fn from(label: Label) -> Self {
        match label.0 {
            Cow::Borrowed(value) => value.into(),
            Cow::Owned(value) => value.into(),
        }
    }
}

/// Names from outside of the code that have labels: of tools, upstreams and stores. The first names
/// get labels of their own, up to a limit, and all later names share [`Label::OTHER`].
///
/// The caller asks only for names that somebody has listed, so that the names which callers invent
/// do not take the labels of real ones.
#[derive(Debug)]
pub struct LabelNames {
    taken: RwLock<TakenNames>,
    limit: usize,
    max_bytes: usize,
}

/// The names that have labels.
#[derive(Debug, Default)]
struct TakenNames {
    names: HashSet<Arc<str>>,
    /// How many of them each other server has listed first.
    by_server: HashMap<Arc<str>, usize>,
}

impl LabelNames {
    /// Labels for at most `limit` names of at most `max_bytes` bytes each.
    pub fn new(limit: usize, max_bytes: usize) -> Self {
        Self { taken: RwLock::default(), limit, max_bytes }
    }

    /// The label of a name that this server itself has listed.
    pub fn label(&self, name: &str) -> Label {
        self.label_where(name, |_, _| true)
    }

    /// The label of a name that another server has listed. It gets a label if that server has fewer
    /// than are free, so that each server leaves as many to the others as it has.
    pub fn label_from(&self, server: &str, name: &str) -> Label {
        self.label_where(name, |taken, free| {
            let own = taken.by_server.get(server).copied().unwrap_or(0);
            if own >= free {
                return false;
            }

            taken.by_server.insert(server.into(), own + 1);
            true
        })
    }

    /// The label of a name. `may_take` says whether a new name gets one, of so many that are free.
    fn label_where(
        &self,
        name: &str,
        may_take: impl FnOnce(&mut TakenNames, usize) -> bool,
    ) -> Label {
        let label = || Label(Cow::Owned(name.to_owned()));
        if name.is_empty() || name.len() > self.max_bytes {
            return Label::OTHER;
        }
        if self.taken.read().names.contains(name) {
            return label();
        }

        let mut taken = self.taken.write();
        if taken.names.contains(name) {
            return label();
        }

        let free = self.limit.saturating_sub(taken.names.len());
        if free == 0 || !may_take(&mut taken, free) {
            return Label::OTHER;
        }
        taken.names.insert(name.into());
        label()
    }
}

impl Default for LabelNames {
    /// Labels for 1,000 names of 128 bytes: more than the tools of a server that a model can use.
    fn default() -> Self {
        Self::new(1_000, 128)
    }
}

/// A counter with labels.
pub fn counter<const N: usize>(name: &'static str, labels: [(&'static str, Label); N]) -> Counter {
    metrics::counter!(name, &pairs(labels))
}

/// A gauge with labels.
pub fn gauge<const N: usize>(name: &'static str, labels: [(&'static str, Label); N]) -> Gauge {
    metrics::gauge!(name, &pairs(labels))
}

/// A histogram with labels.
pub fn histogram<const N: usize>(
    name: &'static str,
    labels: [(&'static str, Label); N],
) -> Histogram {
    metrics::histogram!(name, &pairs(labels))
}

fn pairs<const N: usize>(labels: [(&'static str, Label); N]) -> [(&'static str, SharedString); N] {
    labels.map(|(name, label)| (name, label.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_many_names_have_labels_and_they_keep_them() {
        let names = LabelNames::new(3, 8);
        let shown = ["a", "b", "", "123456789", "c", "d", "a", "e"].map(|name| names.label(name));
        let shown: Vec<_> = shown.iter().map(Label::as_str).collect();
        assert_eq!(shown, ["a", "b", "other", "other", "c", "other", "a", "other"]);
    }

    #[test]
    fn ten_thousand_listed_names_are_a_thousand_labels_and_other() {
        let names = LabelNames::default();
        let labels: HashSet<_> = (0..10_000).map(|n| names.label(&format!("tool-{n}"))).collect();
        assert_eq!(labels.len(), 1_001);
    }

    #[test]
    fn a_server_with_ten_thousand_names_leaves_labels_to_the_others() {
        let names = LabelNames::default();
        let listed = |server: &str, count: usize| {
            let labels = (0..count).map(|n| names.label_from(server, &format!("{server}__{n}")));
            labels.filter(|label| *label != Label::OTHER).count()
        };

        assert_eq!(listed("greedy", 10_000), 500);
        assert_eq!((listed("good", 100), listed("better", 100)), (100, 100));
        assert_eq!(listed("greedy", 10_000), 500, "names keep their labels");
        assert_ne!(names.label("own"), Label::OTHER);
    }

    #[test]
    fn a_status_is_one_of_rfc_9110() {
        assert_eq!(Label::status(204).as_str(), "204");
        assert_eq!([Label::status(0), Label::status(65_535)], [Label::OTHER, Label::OTHER]);
    }
}
