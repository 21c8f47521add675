//! The items that an upstream offers, as Larder lists them.

mod cut;
mod load;
mod pool;
mod record;
mod template;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use larder_protocol::Announcement;
use larder_server::registry::ProvidedTool;
use rmcp::model;

use self::{
    cut::{Cut, Unread},
    load::Loading,
    pool::Digest,
};
pub(super) use self::{
    cut::{CutList, ReasonReader},
    load::{CatalogueSource, PageLimits, Reading},
    pool::{CataloguePool, Kept, digest},
    record::Recorded,
};
use super::{budget::Charge, error::UpstreamError, received::LeftOut};

/// The most items of one list.
const MAX_ITEMS: usize = 10_000;
/// The most pages of one list.
const MAX_PAGES: usize = 1_000;
/// The most items that are named as not offered.
const MAX_LEFT_OUT: usize = 20;

/// The items that an upstream offers, in its order.
#[derive(Default)]
pub(super) struct Catalogue {
    pub(super) tools: Vec<Arc<Kept<Tool>>>,
    tools_by_name: HashMap<String, usize>,
    /// The tools by their names there.
    tools_by_own_name: HashMap<String, usize>,
    prompts: Vec<Arc<Kept<Prompt>>>,
    prompts_by_name: HashMap<String, usize>,
    resources: Vec<Arc<Kept<model::Resource>>>,
    templates: Vec<Arc<Kept<model::ResourceTemplate>>>,

    /// The lists that are not offered to their ends.
    pub(super) cuts: Vec<CutList>,
    /// The items that are not offered, the first ones.
    left_out: Vec<LeftOut>,
    /// The items that have another name than they would have alone, the first ones.
    renamed: Vec<String>,
    /// The instructions of the upstream, for models.
    pub(super) instructions: Option<Arc<str>>,

    /// The memory that it takes besides its items.
    _charge: Charge,
}

/// The lists of an upstream that were read.
pub(super) struct Loaded {
    pub(super) catalogue: Arc<Catalogue>,
    /// The definitions as JSON, if another process would be read likewise and they are not too
    /// long.
    pub(super) record: Option<String>,
}

/// A tool of an upstream.
pub(super) struct Tool {
    /// The name at the upstream.
    pub(super) own_name: String,
    /// Whether a legacy upstream runs it only as a task.
    pub(super) is_task: bool,
    pub(super) provided: Arc<ProvidedTool>,
}

/// A prompt of an upstream.
pub(super) struct Prompt {
    /// The name at the upstream.
    own_name: String,
    listed: model::Prompt,
}

impl Catalogue {
    /// Reads the lists of an upstream, each to its last page or to a bound. A list that cannot be
    /// read has the items of an earlier catalogue.
    pub(super) async fn load(
        source: CatalogueSource<'_>,
        reading: Reading<'_>,
    ) -> Result<Loaded, UpstreamError> {
        let loaded = Loading::new(source).all(reading).await;

        // Lists that failed have left items behind, too.
        source.pool.sweep();
        loaded
    }

    /// The catalogue of definitions that were recorded earlier. `None` if there is no room for it.
    pub(super) async fn restore(
        source: CatalogueSource<'_>,
        recorded: Recorded,
    ) -> Option<Arc<Self>> {
        Loading::new(source).restore(recorded).await
    }

    /// Why the tools are not known, if they could not be read.
    pub(super) fn tools_error(&self) -> Option<String> {
        self.cuts.iter().find_map(CutList::of_tools)
    }

    /// The items that are not offered, and why.
    pub(super) fn left_out(&self) -> Vec<String> {
        self.left_out.iter().map(|LeftOut { name, why }| format!("{name}: {why}")).collect()
    }

    /// The tool that is offered under that name.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools_by_name.get(name).map(|index| &**self.tools[*index])
    }

    /// The items that have another name than they would have alone, and why.
    pub(super) fn renamed(&self) -> Vec<String> {
        self.renamed.clone()
    }

    /// The name under which a tool is offered that has this name there.
    pub(super) fn offered_tool(&self, own_name: &str) -> Option<&str> {
        let index = *self.tools_by_own_name.get(own_name)?;
        Some(&self.tools[index].provided.listed.name)
    }

    /// Whether a resource is offered under this URI.
    pub(super) fn has_resource(&self, uri: &str) -> bool {
        self.resources.iter().any(|resource| resource.uri == uri)
    }

    /// Whether a resource of this URI is listed, or a template expands to it.
    pub(super) fn covers(&self, uri: &str) -> bool {
        let mut templates = self.templates.iter();
        self.has_resource(uri)
            || templates.any(|listed| template::is_expansion(&listed.uri_template, uri))
    }

    /// Whether the upstream itself has the part of a resource that this URI selects: it lists the
    /// whole URI, or a template that names each of these query parameters.
    pub(super) fn has_part(&self, uri: &str, parameters: &[&str]) -> bool {
        let mut templates = self.templates.iter().map(|listed| &*listed.uri_template);
        self.has_resource(uri)
            || templates.any(|listed| {
                parameters.iter().all(|parameter| template::names_parameter(listed, parameter))
                    && template::is_expansion(listed, uri)
            })
    }

    /// The upstream's own name of a prompt.
    pub(super) fn own_prompt(&self, name: &str) -> Option<&str> {
        self.prompts_by_name.get(name).map(|index| &*self.prompts[*index].own_name)
    }

    /// The prompts as they are listed.
    pub(super) fn prompts(&self) -> Vec<model::Prompt> {
        self.prompts.iter().map(|prompt| prompt.listed.clone()).collect()
    }

    /// The resources as they are listed.
    pub(super) fn resources(&self) -> Vec<model::Resource> {
        self.resources.iter().map(|resource| model::Resource::clone(resource)).collect()
    }

    /// The templates as they are listed.
    pub(super) fn templates(&self) -> Vec<model::ResourceTemplate> {
        self.templates.iter().map(|template| model::ResourceTemplate::clone(template)).collect()
    }

    /// Whether it has such a template.
    pub(super) fn has_template(&self, uri_template: &str) -> bool {
        self.templates.iter().any(|known| known.uri_template == uri_template)
    }

    /// Whether it has resources or templates.
    pub(super) fn has_resources(&self) -> bool {
        !self.resources.is_empty() || !self.templates.is_empty()
    }

    /// The lists in which it differs from an earlier one.
    pub(super) fn changes_since(&self, earlier: &Self) -> Vec<Announcement> {
        let same_resources = are_same(&self.resources, &earlier.resources)
            && are_same(&self.templates, &earlier.templates);
        let changes = [
            (are_same(&self.tools, &earlier.tools), Announcement::ToolListChanged),
            (are_same(&self.prompts, &earlier.prompts), Announcement::PromptListChanged),
            (same_resources, Announcement::ResourceListChanged),
        ];
        changes.into_iter().filter(|(same, _)| !same).map(|(_, change)| change).collect()
    }

    fn items(&self) -> usize {
        self.tools.len() + self.prompts.len() + self.resources.len() + self.templates.len()
    }

    /// Tells catalogues apart.
    fn digest(&self) -> Digest {
        let lists = [
            digest_of(&self.tools),
            digest_of(&self.prompts),
            digest_of(&self.resources),
            digest_of(&self.templates),
        ];

        let cuts = self.cuts.iter().map(ToString::to_string);
        let told = self.instructions.as_deref().map(str::to_owned);
        let notes = cuts.chain(self.left_out()).chain(self.renamed()).chain(told);
        let notes: Vec<_> = notes.collect();
        let notes = notes.iter().map(String::as_bytes);
        digest(lists.iter().map(<[u8; 32]>::as_slice).chain(notes))
    }
}

fn digest_of<T>(items: &[Arc<Kept<T>>]) -> Digest {
    digest(items.iter().map(|item| item.digest().as_slice()))
}

/// Whether two lists have the same definitions in the same order.
fn are_same<T>(one: &[Arc<Kept<T>>], other: &[Arc<Kept<T>>]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| one.digest() == other.digest())
}
