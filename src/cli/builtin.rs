//! The server that the binary runs.

use std::sync::Arc;

use larder_gateway::Upstreams;
use larder_query::{Queries, Scripts};
use larder_server::{
    apps::{self, AppOptions},
    registry::{BuildError, Registry},
    tools::{self, Coding, ToolOptions},
    workflow,
};
use larder_store::store::Backend;

use super::{host_upstreams, named::NamedUpstreams};
use crate::config::{Config, ToolListing, UpstreamConfig, WorkflowLocations};

/// The server that the binary runs, assembled.
pub(super) struct Server {
    pub(super) registry: Registry,
    /// The backend that the code gives, in place of that of `store.url`.
    pub(super) backend: Option<Arc<dyn Backend>>,
    /// The upstreams among its providers, if they can change.
    pub(super) upstreams: Option<Arc<Upstreams>>,
    /// The workers of queries, if the server has them.
    pub(super) queries: Option<Arc<Queries>>,
}

impl From<Registry> for Server {
    fn from(registry: Registry) -> Self {
        Self { registry, backend: None, upstreams: None, queries: None }
    }
}

/// How clients reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Http,
    Stdio,
}

/// The part of the instructions about previews and references. Texts of tools are a few words each.
const RESULTS: &str = "\
Large results are stored as resources, out of the conversation. In place of one comes a preview, \
also as structured content {\"spilled\": {note, resources: [{uri, size, next}]}}: the whole is \
under its URI until it expires. Ask for what you need: ";
const QUERYING: &str = "query_resource computes from JSON, CSV and logs (sql or jq), ";
const READING: &str = "\
search_resource finds, read_resource reads parts. Answers say what is missing \
and give the next call; errors say what to do. Give stored content whole to any tool by the \
argument \"{{URI}}\", or a part of it as {\"$larder\": URI, \"select\": JSON Pointer or JSONPath, \
\"as\": text, json, base64 or data}. offset counts from 0; revision is the number of an earlier \
revision, which describe_resource lists.";
const PROJECTING: &str = " \
The argument _larder of other servers' tools gives a part of the result in the same call: \
{\"jq\" | \"sql\" (over table t) | \"search\" | \"fields\": [names] | \"head\": n}, into?; \
{\"whole\": true} gives all; {\"each\": [arguments, …]} calls once for each; {\"pages\": n} gathers \
a list.";
const FINDING: &str = "\
find_tools finds tools and call_tool calls them, also those that answers name. Large results are \
stored as resources; in place of one comes a preview with its URI and the next call. Give stored \
content whole to any tool by the argument \"{{URI}}\", or a part of it as {\"$larder\": URI, \
\"select\": JSON Pointer or JSONPath}.";
const OTHERS: &str =
    " Also there, where not listed: describe_resource, list_resources, search_resources";
const WRITING: &str = ", create_resource, update_resource, delete_resource, share_resource";

/// Says once what all tools and results of this server have in common.
fn instructions(config: &Config) -> String {
    let has_queries = config.query.enabled;
    let projects = has_queries && config.tools.projections;
    let finds = config.tools.listing == ToolListing::Search;

    let parts = [
        (finds, FINDING),
        (!finds, RESULTS),
        (!finds && has_queries, QUERYING),
        (!finds, READING),
        (projects, PROJECTING),
        (!finds, OTHERS),
        (!finds && config.tools.write, WRITING),
        (!finds, "."),
    ];
    parts.into_iter().filter_map(|(is_said, part)| is_said.then_some(part)).collect()
}

/// The built-in tools, the workflows of the configuration, and the upstreams.
pub(super) fn registry(
    config: &Config,
    locations: &WorkflowLocations,
    named: &NamedUpstreams,
    transport: Transport,
) -> Result<Server, BuildError> {
    let problem = |problem: String| BuildError { problems: vec![problem] };

    let mut builder = Registry::builder("larder")
        .instructions(instructions(config))
        .own_tools(config.tools.set.tool_set())
        .with(tools::reading(ToolOptions::default()));

    let queries = config.query.enabled.then(|| Arc::new(Queries::new(config.query.limits())));
    if let Some(queries) = &queries {
        builder = builder.with(tools::querying_with(Arc::clone(queries), config.tools.write));
        if config.tools.projections {
            builder = builder.with(tools::projecting(Arc::clone(queries), config.tools.write));
        }
        if config.code.enabled {
            builder = builder.with(tools::coding(coding(config)));
        }
    }

    if config.apps.enabled {
        let endpoint = config.public_url().map_err(|error| problem(error.to_string()))?;
        builder = builder.with(apps::viewing(AppOptions {
            poll: config.apps.poll(),
            domains: config.apps.domains.clone(),
            endpoint: endpoint.map(|url| url.as_str().to_owned()),
            queries: queries.clone(),
        }));
    }

    if config.tools.write {
        builder = builder.with(tools::writing());
    }

    if config.has_content_links() {
        builder = builder.with(tools::downloading());
        if config.tools.write {
            builder = builder.with(tools::uploading());
        }
    }

    if config.tools.listing == ToolListing::Search {
        builder = builder.with(tools::finding(ToolOptions::default()));
    }

    for workflow in config.workflows.clone() {
        let locations = locations.clone();
        builder = builder.with(workflow::prompt_showing(workflow, move |p| locations.show(p)));
    }

    let upstreams = upstreams(config, named, transport, builder.tool_names()).map_err(problem)?;
    let registry = builder.exchangeable(upstreams.providers()).build()?;
    Ok(Server { registry, backend: None, upstreams: Some(Arc::new(upstreams)), queries })
}

/// The options of run_code.
fn coding(config: &Config) -> Coding {
    let limits = config.code.limits(config.query.confinement);
    Coding {
        scripts: Arc::new(Scripts::new(limits)),
        writes: config.code.writes,
        may_store: config.tools.write,
        ref_bytes: config.limits.ref_bytes,
    }
}

/// The upstreams of the configuration and of the command line.
///
/// # Errors
/// The setting that is wrong.
fn upstreams<'a>(
    config: &Config,
    named: &NamedUpstreams,
    transport: Transport,
    own_tools: impl Iterator<Item = &'a str>,
) -> Result<Upstreams, String> {
    let configured: Result<Vec<_>, _> =
        config.upstreams.iter().map(UpstreamConfig::settings).collect();
    let mut configured = configured.map_err(|error| error.to_string())?;
    let mut fixed = named.settings()?;
    if transport == Transport::Stdio {
        host_upstreams::adopt(configured.iter_mut().chain(&mut fixed), config, named);
    }

    let upstreams = Upstreams::new(configured, fixed, own_tools)
        .map_err(|error| format!("{error}: name them in the configuration file"))?;
    upstreams.limit_messages(config.limits.upstream_bytes);
    if let Some(folder) = config.tools.catalogue_folder() {
        upstreams.remember_in(folder);
    }

    // The steps of workflows name items of upstreams, which are checked before the first client.
    if !config.workflows.is_empty() {
        upstreams.recall();
    }
    Ok(upstreams)
}
