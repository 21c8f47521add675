//! What an operator sees of the process: logs, on standard error only, because
//! standard output may carry the protocol; metrics; traces.

mod fields;
mod inventory;
mod metrics;
mod traces;

use std::sync::OnceLock;

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::Targets, layer::SubscriberExt, registry::LookupSpan,
    reload, util::SubscriberInitExt,
};

pub use self::{
    inventory::Inventory,
    metrics::{Kind, METRICS, Metrics},
    traces::{Traces, finish},
};

/// Where the level of a running log is changed.
static LEVEL: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// What is told of the process.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is logged, unless `RUST_LOG` says so.
    pub level: String,
    /// As one JSON object a line, for machines.
    pub json: bool,
    /// Where traces go, if anywhere.
    pub traces: Option<Traces>,
}

impl Default for Options {
    /// Warnings, for people.
    fn default() -> Self {
        Self { level: "warn".into(), json: false, traces: None }
    }
}

/// Begins to log, and to trace. A second call changes nothing.
pub fn init(options: &Options) {
    let level = EnvFilter::try_from_default_env().unwrap_or_else(|_| filter(&options.level));
    let (level, handle) = reload::Layer::new(level);
    let tracer = options.traces.as_ref().map(Traces::tracer).transpose();
    let (tracer, problem) = match tracer {
        Ok(tracer) => (tracer, None),
        Err(problem) => (None, Some(problem)),
    };
    let begun = match tracer {
        // A filter of all costs each span less than one of each layer.
        None => tracing_subscriber::registry().with(level).with(lines(options.json)).try_init(),
        Some(tracer) => {
            // What we say of calls, not what libraries say of connections.
            let calls = Targets::new().with_target("larder", tracing::Level::INFO);
            let traces = tracing_opentelemetry::layer().with_tracer(tracer).with_filter(calls);
            let lines = lines(options.json).with_filter(level);
            tracing_subscriber::registry().with(lines).with(traces).try_init()
        }
    };
    // Somebody else's subscriber stays.
    if begun.is_ok() {
        let _ = LEVEL.set(handle);
    }
    if let Some(problem) = problem {
        tracing::error!(problem, "traces.endpoint: traces cannot be sent");
    }
}

/// What writes the log.
fn lines<S>(json: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    if json {
        return lines.json().flatten_event(true).boxed();
    }
    let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
    lines.fmt_fields(fields::Fields).with_ansi(is_terminal).boxed()
}

/// Logs that from now on, unless `RUST_LOG` says something else.
pub fn set_level(level: &str) {
    if std::env::var_os(EnvFilter::DEFAULT_ENV).is_some() {
        return;
    }
    if let Some(handle) = LEVEL.get() {
        // It fails only when there is no log any more.
        let _ = handle.reload(filter(level));
    }
}

fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("warn"))
}
