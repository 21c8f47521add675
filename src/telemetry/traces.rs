//! Sends traces by OTLP over HTTP.

use std::sync::OnceLock;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{Sampler, SdkTracer, SdkTracerProvider},
};

/// The provider, kept to flush it at the end.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// The collector of traces, and how they are sent to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Traces {
    /// The URL, such as `http://localhost:4318/v1/traces`.
    pub endpoint: String,
    /// The fraction of calls to trace, from 0 to 1. A caller's own sampling decision takes
    /// precedence.
    pub sample: f64,
    /// The `service.name` of the traces.
    pub service_name: String,
}

impl Traces {
    /// Creates the tracer. It follows the sampling decision of the caller if there is one.
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

/// Sends the remaining traces. Blocks for a few seconds at most.
pub fn finish() {
    if let Some(provider) = PROVIDER.get()
        && let Err(error) = provider.shutdown()
    {
        tracing::warn!(%error, "the last traces could not be sent");
    }
}
