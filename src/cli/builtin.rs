//! The registry of the binary.

use super::named::NamedUpstreams;
use crate::{
    config::{Config, UpstreamConfig, WorkflowLocations},
    registry::{BuildError, Registry},
    tools::{self, ToolOptions},
    upstream::{Settings, Upstream},
    workflow,
};

/// The built-in tools, the workflows of the configuration, and the upstreams.
pub(super) fn registry(
    config: &Config,
    locations: &WorkflowLocations,
    named: NamedUpstreams,
) -> Result<Registry, BuildError> {
    let mut builder = Registry::builder("larder")
        .instructions(
            "Keeps large texts, JSON and files out of the conversation. Store one with create_resource; read parts of it with read_resource, find lines in it with search_resource, compute answers from JSON, CSV and logs with query_resource, and find resources by words with search_resources. Resources expire.",
        )
        .with(tools::reading(ToolOptions::default()));
    #[cfg(feature = "query")]
    if config.query.enabled {
        builder = builder.with(tools::querying(config.query.limits(), config.tools.write));
    }
    if config.tools.write {
        builder = builder.with(tools::writing());
    }
    for workflow in config.workflows.clone() {
        let locations = locations.clone();
        builder = builder.with(workflow::prompt_showing(workflow, move |p| locations.show(p)));
    }
    let upstreams = upstreams(config, named)?;
    for provider in Upstream::all(upstreams, builder.tool_names()) {
        builder = builder.provider(provider);
    }
    builder.build()
}

/// The upstreams of the configuration, and those of the command line.
fn upstreams(config: &Config, named: NamedUpstreams) -> Result<Vec<Settings>, BuildError> {
    let problem = |problem: String| BuildError { problems: vec![problem] };
    let configured = config.upstreams.iter().map(UpstreamConfig::settings);
    let configured: Result<Vec<_>, _> = configured.collect();
    let mut upstreams = configured.map_err(|error| problem(error.to_string()))?;
    for settings in named.settings().map_err(problem)? {
        if upstreams.iter().any(|other| other.name == settings.name) {
            let name = &settings.name;
            return Err(problem(format!(
                "two upstreams are called {name}: name them in the configuration file"
            )));
        }
        upstreams.push(settings);
    }
    Ok(upstreams)
}
