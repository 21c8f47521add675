//! Spans of parts of a call, for traces. Their level is `DEBUG`: without traces they cost next to
//! nothing, and log lines do not have them.

use tracing::Span;

/// A span of a request to another system, such as `redis GET`. `operation` is called only if traces
/// are on.
pub fn outgoing_span(system: &str, operation: impl FnOnce() -> String) -> Span {
    tracing::debug_span!(
        "outgoing",
        otel.name = format!("{system} {}", operation()),
        otel.kind = "client",
    )
}

/// A span of work in this process or a process of its own, such as `query sql`.
pub fn inner_span(name: &str) -> Span {
    tracing::debug_span!("inner", otel.name = name, otel.kind = "internal")
}
