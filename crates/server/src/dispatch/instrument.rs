//! The span and the metrics of a call.

use std::{borrow::Cow, sync::Arc};

use larder_oauth::Identity;
use larder_protocol::{Fault, Member, Method, Params, Trace, json_size};
use larder_runtime::in_flight::InFlight;
use larder_store::store::StoredBytes;
use tokio::time::Instant;
use tracing::{Span, field::Empty};

use super::{
    End, Reader, Reply, Traffic,
    access_log::{Caller, EndedCall},
};
use crate::registry::Registry;

/// The span of a call. Its level is `ERROR`, so that each log line about the call carries
/// the call's ID at any log level.
pub(super) fn span(method: Method, tool: Option<&str>, trace: Option<&Trace>, id: &str) -> Span {
    let name = method.as_str();
    let tool = tool.map(truncate);
    let (gap, called) = tool.map_or(("", ""), |tool| (" ", tool));

    let span = tracing::error_span!(
        "call",
        otel.name = format_args!("{name}{gap}{called}"),
        otel.kind = "server",
        mcp.method.name = name,
        gen_ai.tool.name = tool,
        error.type = Empty,
        call = id,
    );

    #[cfg(feature = "traces")]
    if let Some(trace) = trace {
        continue_trace(&span, trace);
    }
    #[cfg(not(feature = "traces"))]
    let _ = trace;

    span
}

/// Continues the caller's trace (2026-07-28, basic: OpenTelemetry Trace Context).
#[cfg(feature = "traces")]
fn continue_trace(span: &Span, Trace { parent, state }: &Trace) {
    use std::collections::HashMap;

    use opentelemetry::propagation::TextMapPropagator;
    use opentelemetry_sdk::propagation::TraceContextPropagator;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    let mut carrier = HashMap::from([("traceparent".to_owned(), parent.clone())]);
    carrier.extend(state.clone().map(|state| ("tracestate".to_owned(), state)));
    // Fails only if tracing is off.
    let _ = span.set_parent(TraceContextPropagator::new().extract(&carrier));
}

/// The name of the called tool. It is unchecked input.
pub(super) fn tool(method: Method, params: &Params) -> Option<String> {
    let name = || params.text(Member::Name).ok().flatten().map(Cow::into_owned);
    (method == Method::CallTool).then(name).flatten()
}

fn truncate(text: &str) -> &str {
    let end = text.char_indices().nth(80).map_or(text.len(), |(offset, _)| offset);
    &text[..end]
}

/// Measures a call.
pub(super) struct CallMetrics {
    method: Method,
    tool: Option<String>,
    reader: Reader,
    identity: Identity,
    /// The size of the request's parameters, in bytes.
    request_bytes: u64,
    stored_bytes: StoredBytes,
    registry: Arc<Registry>,
    traffic: Arc<Traffic>,
    /// For the access log.
    caller: Option<Caller>,
    result_bytes: Option<u64>,

    started: Instant,
    _in_flight: InFlight,
}

impl CallMetrics {
    pub(super) fn new(
        method: Method,
        tool: Option<String>,
        (identity, reader): (Identity, Reader),
        params: &Params,
        stored_bytes: StoredBytes,
        registry: Arc<Registry>,
        traffic: Arc<Traffic>,
    ) -> Self {
        let in_flight = traffic.call(reader);
        Self {
            method,
            tool,
            reader,
            identity,
            request_bytes: params.as_bytes().len() as u64,
            stored_bytes,
            registry,
            traffic,
            caller: None,
            result_bytes: None,
            started: Instant::now(),
            _in_flight: in_flight,
        }
    }

    /// Adds a line in the access log at the end of the call, if there is a caller for one.
    pub(super) fn logged_for(self, caller: Option<Caller>) -> Self {
        Self { caller, ..self }
    }

    /// The reader of the result.
    pub(super) fn reader(&self) -> Reader {
        self.reader
    }

    /// Counts what the call stored beyond its request and its result.
    pub(super) fn measure(&mut self, outcome: &Result<Reply, Fault>) {
        if self.caller.is_some()
            && let Ok(reply @ Reply::CallTool(_)) = outcome
        {
            self.result_bytes = Some(result_bytes(reply));
        }

        let stored = self.stored_bytes.bytes();
        if stored > 0
            && self.reader == Reader::Model
            && let Ok(reply) = outcome
        {
            let kept_out = stored.saturating_sub(self.request_bytes + result_bytes(reply));
            let listed_by = |tool: &str| self.registry.listed_by(tool);
            self.traffic.add_kept_out(
                kept_out,
                self.tool.as_deref().unwrap_or_default(),
                listed_by,
            );
            if let Some(tool) = &self.tool {
                self.registry.count_kept_out(tool, kept_out);
            }
        }
    }

    /// Records the duration of the call, by its end.
    pub(super) fn record(&self, end: End) {
        if self.reader == Reader::Model {
            self.traffic.ended(end);
            let stored = self.stored_bytes.bytes();
            self.traffic.callers().ended(&self.identity, end, self.request_bytes, stored);
        } else {
            self.traffic.callers().seen(&self.identity);
        }

        // A call without a result may not have reached its tool.
        let has_result = matches!(end, End::Done | End::InputRequired | End::ToolError);
        let tool = self.tool.as_deref().filter(|_| has_result).unwrap_or_default();

        let listed_by = |tool: &str| self.registry.listed_by(tool);
        let took = self.started.elapsed();
        if let Some(caller) = &self.caller {
            let call = EndedCall {
                method: self.method,
                tool: self.tool.as_deref(),
                end,
                bytes_in: self.request_bytes,
                bytes_out: self.result_bytes,
                took,
            };
            self.traffic.access().ended(caller, &call);
        }
        self.traffic.record(self.method, tool, end.error_type(), took, listed_by);
    }
}

/// The size of a tool result as sent, in bytes. Other replies count as 0.
fn result_bytes(reply: &Reply) -> u64 {
    match reply {
        Reply::CallTool(reply) => json_size(&reply.result) as u64,
        _ => 0,
    }
}
