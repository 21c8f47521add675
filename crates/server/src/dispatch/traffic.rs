//! The calls of a server since its start. Counted where the metrics are, which
//! only their recorder can read.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use larder_protocol::Method;
use larder_runtime::{
    histograms::Histograms,
    in_flight::{InFlight, InFlightCount},
    metric::{self, Label, LabelNames},
};
use metrics::Histogram;
use quick_cache::Equivalent;

use super::{AccessLog, Callers, End};
use crate::registry::ListedBy;

/// The reader of a call's result. Traffic counts the bytes that models get.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reader {
    /// A model, or a program in its place.
    #[default]
    Model,
    /// A person, by the console or a page of MCP Apps.
    Person,
}

/// The counters of a server's traffic.
#[derive(Debug, Default)]
pub struct Traffic {
    calls: AtomicU64,
    errors: AtomicU64,
    returned_bytes: AtomicU64,
    kept_out_bytes: AtomicU64,

    running: InFlightCount,
    /// The running calls of people.
    of_people: InFlightCount,
    streams: InFlightCount,

    /// The lines of ended calls.
    access: AccessLog,
    /// The calls of each caller.
    callers: Callers,

    durations: Histograms<CallLabels>,
    /// The tools that have labels.
    tools: LabelNames,
}

/// The numbers of [`Traffic`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct TrafficCounts {
    /// The calls that have ended, of all methods.
    pub calls: u64,
    /// The number of calls that [ended with an error](End::is_error).
    pub errors: u64,
    /// The bytes of the messages with results of tools.
    pub returned_bytes: u64,
    /// The bytes that calls stored as resources, less those of their requests and results.
    pub kept_out_bytes: u64,

    /// The calls that run now, tasks included.
    pub running: u64,
    /// The event streams that are open now.
    pub streams: u64,
}

impl Traffic {
    /// The current numbers.
    pub fn counts(&self) -> TrafficCounts {
        TrafficCounts {
            calls: self.calls.load(Relaxed),
            errors: self.errors.load(Relaxed),
            returned_bytes: self.returned_bytes.load(Relaxed),
            kept_out_bytes: self.kept_out_bytes.load(Relaxed),
            running: self.running.get(),
            streams: self.streams.get(),
        }
    }

    /// The calls of each caller.
    pub fn callers(&self) -> &Callers {
        &self.callers
    }

    /// The access log.
    pub fn access(&self) -> &AccessLog {
        &self.access
    }

    /// Counts an open stream while the guard is held.
    pub fn stream(&self) -> InFlight {
        InFlight::counted("larder_streams", &self.streams)
    }

    /// Counts a running call while the guard is held.
    pub(super) fn call(&self, reader: Reader) -> InFlight {
        let count = match reader {
            Reader::Model => &self.running,
            Reader::Person => &self.of_people,
        };
        InFlight::counted("larder_calls", count)
    }

    /// Counts bytes of a message with the result of a tool.
    pub fn add_returned(&self, bytes: usize) {
        self.returned_bytes.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts bytes of a file that a program has sent over HTTP: no model had to read them.
    pub fn add_sent(&self, bytes: u64) {
        let labels = [("gen_ai_tool_name", Label::fixed(""))];
        metric::counter("larder_context_kept_out_bytes_total", labels).increment(bytes);
        self.kept_out_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts bytes that a call kept out of its client's context. `tool` and `listed_by` are those
    /// of [`record`](Self::record).
    pub(super) fn add_kept_out(
        &self,
        bytes: u64,
        tool: &str,
        listed_by: impl FnOnce(&str) -> Option<ListedBy>,
    ) {
        let labels = [("gen_ai_tool_name", self.tool_label(tool, listed_by))];
        metric::counter("larder_context_kept_out_bytes_total", labels).increment(bytes);
        self.kept_out_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts a call of a model that has ended.
    pub(super) fn ended(&self, end: End) {
        self.calls.fetch_add(1, Relaxed);
        if end.is_error() {
            self.errors.fetch_add(1, Relaxed);
        }
    }

    /// Records the duration of a call or of a step. `tool` is empty if there is none. A tool may have
    /// a label of its own if `listed_by` says who lists it.
    pub(super) fn record(
        &self,
        method: Method,
        tool: &str,
        error: &'static str,
        took: Duration,
        listed_by: impl FnOnce(&str) -> Option<ListedBy>,
    ) {
        let histogram = self.durations.known(&CallLabelsRef { method, tool, error });

        let histogram = histogram.unwrap_or_else(|| {
            let label = self.tool_label(tool, listed_by);
            let labels = CallLabelsRef { method, tool: label.as_str(), error };
            self.durations.get(&labels, || labels.register(label.clone()))
        });

        histogram.record(took);
    }

    fn tool_label(&self, tool: &str, listed_by: impl FnOnce(&str) -> Option<ListedBy>) -> Label {
        if tool.is_empty() {
            return Label::fixed("");
        }

        match listed_by(tool) {
            Some(ListedBy::Server) => self.tools.label(tool),
            Some(ListedBy::Upstream(name)) => self.tools.label_from(&name, tool),
            None => Label::OTHER,
        }
    }
}

/// The labels of the duration of a call or step.
#[derive(Debug, PartialEq, Eq, Hash)]
struct CallLabels {
    method: Method,
    tool: String,
    error: &'static str,
}

/// [`CallLabels`], with the same hash.
#[derive(Clone, Copy, Hash)]
struct CallLabelsRef<'a> {
    method: Method,
    tool: &'a str,
    error: &'static str,
}

impl CallLabelsRef<'_> {
    /// Asks the recorder for the histogram.
    fn register(self, tool: Label) -> (CallLabels, Histogram) {
        let Self { method, error, .. } = self;
        let labels = CallLabels { method, tool: tool.as_str().to_owned(), error };
        let histogram = metric::histogram(
            "mcp_server_operation_duration_seconds",
            [
                ("mcp_method_name", Label::fixed(method.as_str())),
                ("gen_ai_tool_name", tool),
                ("error_type", Label::fixed(error)),
            ],
        );

        (labels, histogram)
    }
}

impl Equivalent<CallLabels> for CallLabelsRef<'_> {
    fn equivalent(&self, labels: &CallLabels) -> bool {
        (self.method, self.tool, self.error) == (labels.method, &*labels.tool, labels.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_client_ends_itself_is_no_error() {
        let traffic = Traffic::default();
        for end in End::ALL {
            traffic.ended(end);
        }

        let counts = traffic.counts();
        assert_eq!((counts.calls, counts.errors), (10, 6));

        let errors: Vec<_> = End::ALL.into_iter().filter(|end| end.is_error()).collect();
        let expected =
            [End::ToolError, End::Refused, End::Failed, End::Stopped, End::Expired, End::TimedOut];
        assert_eq!(errors, expected);
    }

    #[test]
    fn what_is_in_progress_is_counted_until_its_guard_is_dropped() {
        let traffic = Traffic::default();
        let call = traffic.call(Reader::Model);
        let _other = traffic.call(Reader::Model);
        let _of_a_person = traffic.call(Reader::Person);
        let stream = traffic.stream();
        assert_eq!((traffic.counts().running, traffic.counts().streams), (2, 1));

        drop((call, stream));
        assert_eq!((traffic.counts().running, traffic.counts().streams), (1, 0));
    }
}
