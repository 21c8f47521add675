//! Metrics with labels. A label's value is a [`Label`], which no caller can invent: Prometheus keeps
//! each set of labels for ever.
//!
//! Other code records only metrics without labels by the macros of the crate `metrics`; a test
//! checks that.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

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
/// The caller asks only for names that somebody has listed, so that the names which callers invent do
/// not take the labels of real ones.
#[derive(Debug)]
pub struct LabelNames {
    names: RwLock<HashSet<Arc<str>>>,
    limit: usize,
    max_bytes: usize,
}

impl LabelNames {
    /// Labels for at most `limit` names of at most `max_bytes` bytes each.
    pub fn new(limit: usize, max_bytes: usize) -> Self {
        Self { names: RwLock::default(), limit, max_bytes }
    }

    /// The label of a listed name.
    pub fn label(&self, name: &str) -> Label {
        let label = || Label(Cow::Owned(name.to_owned()));
        if name.is_empty() || name.len() > self.max_bytes {
            return Label::OTHER;
        }
        if self.names.read().contains(name) {
            return label();
        }

        let mut names = self.names.write();
        if names.len() >= self.limit && !names.contains(name) {
            return Label::OTHER;
        }
        names.insert(name.into());
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
    fn a_status_is_one_of_rfc_9110() {
        assert_eq!(Label::status(204).as_str(), "204");
        assert_eq!([Label::status(0), Label::status(65_535)], [Label::OTHER, Label::OTHER]);
    }
}
