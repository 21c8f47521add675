//! The registry of the binary.

use crate::{
    config::{Config, WorkflowLocations},
    registry::{BuildError, Registry},
    tools::{self, ToolOptions},
    workflow,
};

/// The built-in tools, and the workflows of the configuration.
pub(super) fn registry(
    config: &Config,
    locations: &WorkflowLocations,
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
    builder.build()
}
