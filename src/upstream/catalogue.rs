//! What an upstream offers, as Larder lists it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use rmcp::model;
use serde_json::json;

use super::{
    error::UpstreamError,
    link::Link,
    names::Naming,
    received::{
        LeftOut, List, Page, PromptList, ResourceList, TemplateList, ToolDefinition, ToolList,
    },
    settings::Settings,
};
use crate::{
    protocol::Announcement,
    registry::{ProvidedTool, lookup},
};

/// The most items of one list.
const MAX_ITEMS: usize = 10_000;
/// The most items that are named as not offered.
const MAX_LEFT_OUT: usize = 20;

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
    /// The items that are not offered.
    left_out: Vec<LeftOut>,
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
        let mut catalogue = Self::default();
        if link.declares("tools") {
            for tool in list::<ToolList>(link).await? {
                catalogue.add_tool(tool, settings, naming);
            }
            let tools = catalogue.tools.iter();
            link.mirrored.set(tools.map(|tool| (&tool.own_name, &tool.provided)));
        }
        if link.declares("prompts") {
            for prompt in list::<PromptList>(link).await? {
                catalogue.add_prompt(prompt, naming);
            }
        }
        if link.declares("resources") {
            for resource in list::<ResourceList>(link).await? {
                catalogue.add_resource(resource, naming);
            }
            // Older servers know no templates.
            for template in list::<TemplateList>(link).await.unwrap_or_default() {
                catalogue.add_template(template, naming);
            }
        }
        for LeftOut { name, why } in &catalogue.left_out {
            tracing::warn!(upstream = naming.upstream, name, why, "an item is not offered");
        }
        Ok(catalogue)
    }

    fn add_tool(
        &mut self,
        definition: Result<ToolDefinition, LeftOut>,
        settings: &Settings,
        naming: &Naming,
    ) {
        let Some(ToolDefinition { own_name, is_task, mut tool, input }) = self.take(definition)
        else {
            return;
        };
        let Some(name) = settings.tools.name(&own_name) else { return };
        naming.offer_ui(&mut tool);
        let taken = &mut self.tools_by_name;
        let name = naming.offered(name, |name| taken.contains_key(name));
        tool.name = name.clone().into();
        taken.insert(name, self.tools.len());

        let spill = lookup(&settings.spill, &own_name).copied().unwrap_or_default();
        let ttl = lookup(&settings.ttl, &own_name).copied();
        let provided = Arc::new(ProvidedTool::new(tool, input).with_results(spill, ttl));
        self.tools.push(Tool { own_name, is_task, provided });
    }

    fn add_prompt(&mut self, definition: Result<model::Prompt, LeftOut>, naming: &Naming) {
        let Some(mut prompt) = self.take(definition) else { return };
        let name = naming.offered(&prompt.name, |name| self.own_prompts.contains_key(name));
        let own_name = std::mem::replace(&mut prompt.name, name.clone());
        self.own_prompts.insert(name, own_name);
        self.prompts.push(prompt);
    }

    fn add_resource(&mut self, definition: Result<model::Resource, LeftOut>, naming: &Naming) {
        let Some(mut resource) = self.take(definition) else { return };
        naming.offer(&mut resource.uri);
        self.resources.push(resource);
    }

    fn add_template(
        &mut self,
        definition: Result<model::ResourceTemplate, LeftOut>,
        naming: &Naming,
    ) {
        let Some(mut template) = self.take(definition) else { return };
        naming.offer(&mut template.uri_template);
        self.templates.push(template);
    }

    /// The definition, or `None` if it is left out.
    fn take<T>(&mut self, definition: Result<T, LeftOut>) -> Option<T> {
        match definition {
            Ok(definition) => Some(definition),
            Err(left_out) => {
                if self.left_out.len() < MAX_LEFT_OUT {
                    self.left_out.push(left_out);
                }
                None
            }
        }
    }

    /// The items that are not offered, and why.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.left_out.iter().map(|LeftOut { name, why }| format!("{name}: {why}")).collect()
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

/// All items of a list. Stops at a cursor that comes again.
async fn list<L: List>(link: &Arc<Link>) -> Result<Vec<Result<L::Item, LeftOut>>, UpstreamError> {
    let mut items = Vec::new();
    let mut seen = HashSet::new();
    let mut params = json!({});
    loop {
        let page: Page<L> = link.request(L::METHOD, params).await?;
        let next = page.next.clone();
        items.extend(page.items());

        let Some(cursor) = next else { return Ok(items) };
        if items.len() >= MAX_ITEMS || !seen.insert(cursor.clone()) {
            tracing::warn!(method = L::METHOD, "an upstream's list has no end and is cut");
            items.truncate(MAX_ITEMS);
            return Ok(items);
        }
        params = json!({ "cursor": cursor });
    }
}
