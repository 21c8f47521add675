//! Traces, sent by OTLP over HTTP.

use std::sync::OnceLock;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};

/// What sends them, so that it can be asked to send the last ones.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Where traces go.
#[derive(Debug, Clone, PartialEq)]
pub struct Traces {
    /// The URL, such as `http://localhost:4318/v1/traces`.
    pub endpoint: String,
    /// The part of the calls that is traced where the caller does not say.
    pub sample: f64,
    /// The name of this service in them.
    pub service_name: String,
}

impl Traces {
    /// Begins to send. A caller who traces decides for its calls.
    pub(super) fn tracer(&self) -> Result<SdkTracer, String> {
        let exporter = SpanExporter::builder().with_http().with_endpoint(&self.endpoint).build();
        let exporter = exporter.map_err(|error| error.to_string())?;
        let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(self.sample)));
        let resource = Resource::builder().with_service_name(self.service_name.clone()).build();
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_sampler(sampler)
            .with_resource(resource)
            .build();
        let tracer = provider.tracer("larder");
        let _ = PROVIDER.set(provider);
        Ok(tracer)
    }
}

/// Sends what has not been sent. Blocks for as long as that takes, a few
/// seconds at most.
pub fn finish() {
    if let Some(provider) = PROVIDER.get()
        && let Err(error) = provider.shutdown()
    {
        tracing::warn!(%error, "the last traces could not be sent");
    }
}
