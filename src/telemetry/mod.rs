//! Logs, metrics and traces of the process. Logs go to standard error only, because
//! standard output may carry the protocol.

mod fields;
mod inventory;
mod metrics;
mod process;
mod traces;

use std::sync::OnceLock;

use larder_runtime::environment::variable;
use tracing::{Level, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{LevelFilter, filter_fn},
    layer::{Filter, SubscriberExt},
    registry::LookupSpan,
    reload,
    util::SubscriberInitExt,
};

pub use self::{
    inventory::Inventory,
    metrics::{Kind, METRICS, Metrics},
    process::measure as measure_process,
    traces::{Traces, finish},
};

/// Changes the level of the running log.
static LEVEL: OnceLock<reload::Handle<EnvFilter, Registry>> = OnceLock::new();

/// Options for logs and traces.
#[derive(Debug, Clone)]
pub struct Options {
    /// The log filter. `RUST_LOG` overrides it.
    pub level: String,
    /// Whether log lines are JSON objects.
    pub json: bool,
    /// The collector that gets traces, if any.
    pub traces: Option<Traces>,
}

impl Default for Options {
    /// Warnings, as text.
    fn default() -> Self {
        Self { level: "warn".into(), json: false, traces: None }
    }
}

/// Starts logging and tracing. Later calls have no effect.
pub fn init(options: &Options) {
    let level = variable(EnvFilter::DEFAULT_ENV).and_then(|level| EnvFilter::try_new(level).ok());
    let level = level.unwrap_or_else(|| filter(&options.level));
    let (level, handle) = reload::Layer::new(level);

    let tracer = options.traces.as_ref().map(Traces::tracer).transpose();
    let (tracer, problem) = match tracer {
        Ok(tracer) => (tracer, None),
        Err(problem) => (None, Some(problem)),
    };

    let installed = match tracer {
        // A global filter is cheaper per span than a filter per layer.
        None => tracing_subscriber::registry().with(level).with(lines(options.json)).try_init(),
        Some(tracer) => {
            let traces = tracing_opentelemetry::layer().with_tracer(tracer).with_filter(traced());
            let lines = lines(options.json).with_filter(level);
            tracing_subscriber::registry().with(lines).with(traces).try_init()
        }
    };

    // An existing subscriber stays installed.
    if installed.is_ok() {
        let _ = LEVEL.set(handle);
    }

    if let Some(problem) = problem {
        tracing::error!(problem, "traces.endpoint: traces cannot be sent");
    }
}

/// The spans of Larder, not those of libraries, and the log lines in them without details.
fn traced<S>() -> impl Filter<S> {
    let traced = filter_fn(|metadata| {
        let most = if metadata.is_span() { Level::DEBUG } else { Level::INFO };
        metadata.target().starts_with("larder") && *metadata.level() <= most
    });
    traced.with_max_level_hint(LevelFilter::DEBUG)
}

/// The layer that writes the log.
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

/// Changes the log filter, unless `RUST_LOG` is set.
pub fn set_level(level: &str) {
    if variable(EnvFilter::DEFAULT_ENV).is_some() {
        return;
    }

    if let Some(handle) = LEVEL.get() {
        // Fails only if the subscriber is gone.
        let _ = handle.reload(filter(level));
    }
}

fn filter(level: &str) -> EnvFilter {
    EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("warn"))
}
