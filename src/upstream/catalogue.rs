//! What an upstream offers, as Larder lists it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use rmcp::model;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    draft::to_2020_12, error::UpstreamError, link::Link, names::Naming, settings::Settings,
};
use crate::{
    protocol::Announcement,
    registry::{ProvidedTool, lookup},
    schema::Validator,
};

/// The most items of one list.
const MAX_ITEMS: usize = 10_000;

/// What an upstream offers, in its order.
#[derive(Default)]
pub(super) struct Catalogue {
    pub(super) tools: Vec<Tool>,
    tools_by_name: HashMap<String, usize>,
    pub(super) prompts: Vec<model::Prompt>,
    /// The upstream's own names of the prompts.
    own_prompts: HashMap<String, String>,
    pub(super) resources: Vec<model::Resource>,
    pub(super) templates: Vec<model::ResourceTemplate>,
}

/// A tool of an upstream.
pub(super) struct Tool {
    /// Its name there.
    pub(super) own_name: String,
    /// Whether a legacy upstream runs it only as a task.
    pub(super) is_task: bool,
    pub(super) provided: Arc<ProvidedTool>,
}

impl Catalogue {
    /// Reads the lists of an upstream, each to its last page.
    pub(super) async fn load(
        link: &Arc<Link>,
        settings: &Settings,
        naming: &Naming,
    ) -> Result<Self, UpstreamError> {
        let upstream = naming.upstream.as_str();
        let mut catalogue = Self::default();
        if link.declares("tools") {
            for tool in list(link, "tools/list", "tools").await? {
                catalogue.add_tool(tool, settings, naming);
            }
            let tools = catalogue.tools.iter();
            link.mirrored.set(tools.map(|tool| (&tool.own_name, &tool.provided)));
        }
        if link.declares("prompts") {
            for prompt in list(link, "prompts/list", "prompts").await? {
                catalogue.add_prompt(prompt, upstream, naming);
            }
        }
        if link.declares("resources") {
            let resources = list(link, "resources/list", "resources").await?;
            catalogue.resources = offered(resources, "uri", upstream, naming);
            // Older servers know no templates.
            let templates = list(link, "resources/templates/list", "resourceTemplates").await;
            let templates = templates.unwrap_or_default();
            catalogue.templates = offered(templates, "uriTemplate", upstream, naming);
        }
        Ok(catalogue)
    }

    fn add_tool(&mut self, mut tool: Value, settings: &Settings, naming: &Naming) {
        let own_name = tool["name"].as_str().unwrap_or_default().to_owned();
        let Some(name) = settings.tools.name(&own_name) else { return };
        naming.offer_ui(&mut tool);
        let is_task = tool["execution"]["taskSupport"] == "required";
        let Some(mut tool) = parse_tool(tool, &naming.upstream) else { return };
        let taken = &mut self.tools_by_name;
        let name = naming.offered(name, |name| taken.contains_key(name));
        tool.name = name.clone().into();
        taken.insert(name, self.tools.len());
        let input = match to_2020_12(Value::Object(model::JsonObject::clone(&tool.input_schema))) {
            Value::Object(input) => Some(input),
            _ => None,
        };
        let spill = lookup(&settings.spill, &own_name).copied().unwrap_or_default();
        let ttl = lookup(&settings.ttl, &own_name).copied();
        let provided = Arc::new(ProvidedTool::new(tool, input).with_results(spill, ttl));
        self.tools.push(Tool { own_name, is_task, provided });
    }

    fn add_prompt(&mut self, prompt: Value, upstream: &str, naming: &Naming) {
        let Some(mut prompt) = parse::<model::Prompt>(prompt, upstream) else { return };
        let name = naming.offered(&prompt.name, |name| self.own_prompts.contains_key(name));
        let own_name = std::mem::replace(&mut prompt.name, name.clone());
        self.own_prompts.insert(name, own_name);
        self.prompts.push(prompt);
    }

    /// The tool that is offered under that name.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools_by_name.get(name).map(|index| &self.tools[*index])
    }

    /// The upstream's own name of a prompt.
    pub(super) fn own_prompt(&self, name: &str) -> Option<&str> {
        self.own_prompts.get(name).map(String::as_str)
    }

    /// The lists in which it differs from an earlier one.
    pub(super) fn changes_since(&self, earlier: &Self) -> Vec<Announcement> {
        let tools = |catalogue: &Self| -> Vec<Arc<ProvidedTool>> {
            catalogue.tools.iter().map(|tool| Arc::clone(&tool.provided)).collect()
        };
        let (mine, theirs) = (tools(self), tools(earlier));
        let same_tools = mine.len() == theirs.len()
            && mine.iter().zip(&theirs).all(|(mine, theirs)| mine.listed == theirs.listed);
        let same_resources =
            self.resources == earlier.resources && self.templates == earlier.templates;
        let changes = [
            (same_tools, Announcement::ToolListChanged),
            (self.prompts == earlier.prompts, Announcement::PromptListChanged),
            (same_resources, Announcement::ResourceListChanged),
        ];
        changes.into_iter().filter(|(same, _)| !same).map(|(_, change)| change).collect()
    }
}

/// Definitions of resources or templates, under the URIs of which they are offered.
fn offered<T: DeserializeOwned>(
    items: Vec<Value>,
    member: &str,
    upstream: &str,
    naming: &Naming,
) -> Vec<T> {
    let items = items.into_iter().filter_map(|mut item| {
        naming.offer_member(&mut item, member);
        parse(item, upstream)
    });
    items.collect()
}

/// A definition. An invalid one is logged and left out.
fn parse<T: DeserializeOwned>(item: Value, upstream: &str) -> Option<T> {
    serde_json::from_value(item)
        .inspect_err(|error| {
            tracing::warn!(upstream, %error, "an invalid definition is not listed");
        })
        .ok()
}

/// All items of a list. Stops at a cursor that comes again.
async fn list(
    link: &Arc<Link>,
    method: &'static str,
    member: &str,
) -> Result<Vec<Value>, UpstreamError> {
    let (mut items, mut seen) = (Vec::new(), HashSet::new());
    let mut params = json!({});
    loop {
        let mut page = link.request(method, params).await?;
        if let Value::Array(more) = page[member].take() {
            items.extend(more);
        }
        let Value::String(cursor) = page["nextCursor"].take() else { return Ok(items) };
        if items.len() >= MAX_ITEMS || !seen.insert(cursor.clone()) {
            tracing::warn!(method, "an upstream's list has no end and is cut");
            items.truncate(MAX_ITEMS);
            return Ok(items);
        }
        params = json!({ "cursor": cursor });
    }
}

/// The tool's definition. An output schema that does not compile is left out,
/// because clients would refuse the whole list.
fn parse_tool(tool: Value, upstream: &str) -> Option<model::Tool> {
    let mut tool: model::Tool = parse(tool, upstream)?;
    let Some(own) = tool.output_schema.take() else { return Some(tool) };
    let own = to_2020_12(Value::Object(model::JsonObject::clone(&own)));
    let Value::Object(own) = own else { return Some(tool) };
    match Validator::for_output(own) {
        Ok(validator) => tool.output_schema = Some(validator.schema),
        Err(problem) => {
            tracing::warn!(upstream, tool = %tool.name, problem, "an output schema is left out");
        }
    }
    Some(tool)
}
