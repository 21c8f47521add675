//! [`Loading`]: reads the lists of an upstream, page by page, within bounds.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use larder_protocol::quote::shortened;
use larder_server::registry::{ProvidedTool, lookup};
use rmcp::model;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::{
    Catalogue, Cut, CutList, Loaded, MAX_ITEMS, MAX_LEFT_OUT, MAX_PAGES, Prompt, Tool, Unread,
    pool::{CataloguePool, Kept, SharedItems, digest},
    record::{CatalogueRecord, Recorded},
};
use crate::{
    budget::{Charge, MessageBudget, NoRoom, Payer},
    error::UpstreamError,
    link::Link,
    names::Naming,
    received::{
        Definition, LeftOut, List, NextPage, Page, PromptList, ResourceList, TemplateList,
        ToolDefinition, ToolList,
    },
    settings::Settings,
};

/// The member of metadata that has the upstream's own name of an item.
const ORIGINAL_NAME: &str = "larder/name";
/// About how much memory an item's place in a catalogue takes, besides its name.
const PLACE_BYTES: usize = 128;
/// After so many items, other tasks have their turn.
const ITEMS_A_TURN: usize = 32;

/// The settings, names, pool and budget with which an upstream's catalogue is read.
#[derive(Clone, Copy)]
pub(crate) struct CatalogueSource<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) naming: &'a Naming,
    pub(crate) pool: &'a CataloguePool,
    pub(crate) budget: &'a Arc<MessageBudget>,
}

/// A catalogue that is being read.
pub(super) struct Loading<'a> {
    source: CatalogueSource<'a>,
    catalogue: Catalogue,
    /// The bytes of the definitions so far.
    bytes: usize,
    /// The definitions as they came, for other processes.
    record: CatalogueRecord,
}

/// How the lists of a running upstream are read.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) link: &'a Arc<Link>,
    /// The catalogue that is known already.
    pub(crate) earlier: Option<&'a Catalogue>,
    /// How long one page may take.
    pub(crate) limits: PageLimits,
    /// Whether nobody has used the process yet, so that others would be offered the same.
    pub(crate) is_fresh: bool,
}

/// How long one page of a list may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageLimits {
    pub(crate) tools: Duration,
    /// Of every other list: none of them may withhold the tools for long.
    pub(crate) others: Duration,
}

/// A list whose items a catalogue can have.
trait Offered: List + Sized {
    /// Adds an item. Its memory is counted already, in the charge of its page.
    fn add(
        loading: &mut Loading<'_>,
        definition: Definition<Self>,
        page: &mut Charge,
    ) -> impl Future<Output = Result<(), Cut>> + Send;

    /// Puts the items of an earlier catalogue in the place of this list, if there are any.
    fn keep_earlier(catalogue: &mut Catalogue, earlier: &Catalogue);
}

impl<'a> Loading<'a> {
    pub(super) fn new(source: CatalogueSource<'a>) -> Self {
        Self {
            source,
            catalogue: Catalogue::default(),
            bytes: 0,
            record: CatalogueRecord::default(),
        }
    }

    /// Reads the lists that the upstream declares. A list that fails costs no other list; its items
    /// are those of the earlier catalogue, if there is one.
    pub(super) async fn all(mut self, reading: Reading<'_>) -> Result<Loaded, UpstreamError> {
        let link = reading.link;
        if !reading.is_fresh {
            self.record = CatalogueRecord::off();
        }

        self.catalogue.instructions = link.instructions();

        let declared = link.capabilities();
        // An upstream that declares no list at all may have any.
        let declares_none = !declared.has_lists();
        if declared.tools.is_some() || declares_none {
            self.list::<ToolList>(&reading).await?;
            let tools = self.catalogue.tools.iter();
            link.mirrored.set(tools.map(|tool| (&tool.own_name, &tool.provided)));
        }
        if declared.prompts.is_some() || declares_none {
            self.list::<PromptList>(&reading).await?;
        }
        if declared.resources.is_some() || declares_none {
            self.list::<ResourceList>(&reading).await?;
            self.list::<TemplateList>(&reading).await?;
        }

        let record = std::mem::take(&mut self.record);
        let told = self.catalogue.instructions.clone();
        // Another process would be cut likewise.
        let is_lasting = !self.catalogue.cuts.iter().any(CutList::is_transient);
        Ok(Loaded {
            catalogue: self.finish(),
            record: record.complete(told.as_deref()).filter(|_| is_lasting),
        })
    }

    /// The catalogue of definitions that were recorded earlier. `None` if it cannot be made as a
    /// whole now.
    pub(super) async fn restore(mut self, recorded: Recorded) -> Option<Arc<Catalogue>> {
        let Recorded { tools, prompts, resources, templates, instructions } = recorded;
        self.catalogue.instructions = instructions;
        self.add_all::<ToolList>(tools).await?;
        self.add_all::<PromptList>(prompts).await?;
        self.add_all::<ResourceList>(resources).await?;
        self.add_all::<TemplateList>(templates).await?;
        Some(self.finish())
    }

    async fn add_all<L: Offered>(&mut self, definitions: Vec<Value>) -> Option<()> {
        for (number, definition) in definitions.into_iter().take(MAX_ITEMS).enumerate() {
            match Definition::<L>::of(definition) {
                Ok(definition) => L::add(self, definition, &mut Charge::default()).await.ok()?,
                Err(left_out) => self.leave_out(left_out),
            }
            if number % ITEMS_A_TURN == 0 {
                tokio::task::yield_now().await;
            }
        }
        Some(())
    }

    /// The catalogue, which is that of another session if both are the same.
    fn finish(self) -> Arc<Catalogue> {
        let Self { source: source @ CatalogueSource { settings, pool, .. }, catalogue, .. } = self;
        for cut in &catalogue.cuts {
            tracing::warn!(upstream = %settings.name, %cut, "a list of an upstream is cut");
        }
        for LeftOut { name, why } in &catalogue.left_out {
            tracing::warn!(upstream = %settings.name, name, why, "an item is not offered");
        }
        for renamed in &catalogue.renamed {
            tracing::warn!(upstream = %settings.name, renamed, "two items would have one name");
        }

        let digest = catalogue.digest();
        if let Some(same) = pool.catalogues.get(&digest) {
            return same;
        }

        // The number of items bounds this memory, so a catalogue is kept even without room for it.
        let mut charge = source.charge();
        let _ = charge.try_cover_all(catalogue.items() * PLACE_BYTES);
        let counted = Catalogue { _charge: charge, ..catalogue };
        pool.catalogues.share(digest, counted)
    }

    /// Reads a list up to its last page, or up to a bound.
    async fn list<L: Offered>(&mut self, reading: &Reading<'_>) -> Result<(), UpstreamError> {
        let Reading { link, earlier, limits, .. } = reading;
        let limit = if L::METHOD == ToolList::METHOD { limits.tools } else { limits.others };
        let error = match self.pages::<L>(link, limit).await {
            Ok(()) => return Ok(()),
            Err(Unread::Cut(why)) => {
                if let (Cut::Time(_), Some(earlier)) = (&why, earlier) {
                    L::keep_earlier(&mut self.catalogue, earlier);
                }
                self.catalogue.cuts.push(CutList { method: L::METHOD, why });
                return Ok(());
            }
            // Nothing else would be answered either.
            Err(Unread::Failed(error)) if error.is_callers() || link.has_ended() => {
                return Err(error);
            }
            Err(Unread::Failed(error)) => error,
        };

        // Older servers know no templates, and one that declares no list need not have any.
        let may_lack = L::METHOD == TemplateList::METHOD || !link.capabilities().has_lists();
        if may_lack && error.is_unknown_method() {
            return Ok(());
        }

        if let Some(earlier) = earlier {
            L::keep_earlier(&mut self.catalogue, earlier);
        }
        let upstream = &self.source.settings.name;
        tracing::warn!(upstream, list = L::METHOD, %error, "a list cannot be read");
        self.catalogue.cuts.push(CutList::failed(L::METHOD, error));
        Ok(())
    }

    /// Reads the pages of a list, the last one included.
    async fn pages<L: Offered>(&mut self, link: &Arc<Link>, limit: Duration) -> Result<(), Unread> {
        let whole = self.source.settings.call_timeout;
        let deadline = Instant::now() + whole;
        let mut seen = HashSet::new();
        let mut params = json!({});
        let mut items = 0;

        for _ in 0..MAX_PAGES {
            let page = link.request_counted::<Page<L>>(L::METHOD, params);
            let page_deadline = Instant::now() + limit;
            let (page, mut charge) = match timeout_at(deadline.min(page_deadline), page).await {
                Ok(page) => page?,
                Err(_) => return Err(Cut::Time(limit.min(whole)).into()),
            };
            let next = page.next.clone();

            for definition in page.definitions() {
                items += 1;
                if items > MAX_ITEMS {
                    return Err(Cut::Items.into());
                }
                match definition {
                    Ok(definition) => {
                        self.record.add(&definition);
                        L::add(self, definition, &mut charge).await?;
                    }
                    Err(left_out) => self.leave_out(left_out),
                }
                if items % ITEMS_A_TURN == 0 {
                    tokio::task::yield_now().await;
                }
            }

            let cursor = match next {
                NextPage::End => return Ok(()),
                NextPage::Cursor(cursor) => cursor,
                NextPage::Unclear(problem) => return Err(Cut::Cursor(problem).into()),
            };
            if !seen.insert(digest([cursor.to_string().as_bytes()])) {
                return Err(Cut::Circle.into());
            }
            params = json!({ "cursor": cursor });
        }
        Err(Cut::Pages.into())
    }

    /// Keeps an item, or takes the same item of another session. `name` is the one under which it
    /// is offered. `None` if the definition is left out.
    async fn keep<L: List, T>(
        &mut self,
        pool: &SharedItems<Kept<T>>,
        name: &str,
        definition: Definition<L>,
        page: &mut Charge,
        offer: impl FnOnce(L::Item) -> T,
    ) -> Result<Option<Arc<Kept<T>>>, Cut> {
        let bytes = definition.memory();
        let max = self.source.settings.max_catalogue;
        if self.bytes + bytes > max {
            return Err(Cut::Bytes(max));
        }

        let digest = digest([name.as_bytes(), &definition.encoded()]);
        if let Some(same) = pool.get(&digest) {
            self.bytes += bytes;
            return Ok(Some(same));
        }

        let charge = self.charge(bytes, page).await?;
        let item = match definition.read() {
            Ok(item) => item,
            Err(left_out) => {
                self.leave_out(left_out);
                return Ok(None);
            }
        };
        self.bytes += bytes;
        Ok(Some(pool.share(digest, Kept::new(offer(item), digest, charge))))
    }

    fn leave_out(&mut self, item: LeftOut) {
        if self.catalogue.left_out.len() < MAX_LEFT_OUT {
            self.catalogue.left_out.push(item);
        }
    }

    /// Tells that an item would have the name of another one, if it has.
    fn rename(&mut self, own_name: &str, alone: &str, name: &str) {
        if alone != name && self.catalogue.renamed.len() < MAX_LEFT_OUT {
            let own_name = shortened(own_name);
            self.catalogue.renamed.push(format!(
                "{own_name} is offered as {name}: another one is offered as {alone}"
            ));
        }
    }

    /// The charge of an item, as a part of that of its page.
    async fn charge(&self, bytes: usize, page: &mut Charge) -> Result<Charge, Cut> {
        let mut charge = self.source.charge();
        charge.add(page.split(bytes));
        let covered = charge.cover_all(bytes).await;
        covered.map_err(|NoRoom| Cut::NoRoom(self.source.budget.max()))?;
        Ok(charge)
    }
}

impl CatalogueSource<'_> {
    /// An empty charge of the upstream.
    fn charge(&self) -> Charge {
        let upstream = self.settings.name.as_str().into();
        self.budget.charge(Payer { owner: None, upstream })
    }
}

impl Offered for ToolList {
    fn keep_earlier(catalogue: &mut Catalogue, earlier: &Catalogue) {
        if !earlier.tools.is_empty() {
            catalogue.tools.clone_from(&earlier.tools);
            catalogue.tools_by_name.clone_from(&earlier.tools_by_name);
            catalogue.tools_by_own_name.clone_from(&earlier.tools_by_own_name);
        }
    }

    async fn add(
        loading: &mut Loading<'_>,
        definition: Definition<Self>,
        page: &mut Charge,
    ) -> Result<(), Cut> {
        let CatalogueSource { settings, naming, pool, .. } = loading.source;
        let own_name = definition.name().to_owned();
        let Some(wanted) = settings.tools.name(&own_name) else { return Ok(()) };
        if loading.catalogue.tools_by_own_name.contains_key(&own_name) {
            let why = "its name is listed twice: the first one is offered";
            loading.leave_out(LeftOut::new(&own_name, why));
            return Ok(());
        }

        let taken = &loading.catalogue.tools_by_name;
        let name = naming.offered(wanted, |name| taken.contains_key(name));
        let alone = naming.offered(wanted, |_| false);

        let offer = |item| offered_tool(item, &name, settings, naming);
        if let Some(tool) = loading.keep(&pool.tools, &name, definition, page, offer).await? {
            loading.rename(&own_name, &alone, &name);
            let catalogue = &mut loading.catalogue;
            catalogue.tools_by_name.insert(name, catalogue.tools.len());
            catalogue.tools_by_own_name.insert(own_name, catalogue.tools.len());
            catalogue.tools.push(tool);
        }
        Ok(())
    }
}

impl Offered for PromptList {
    fn keep_earlier(catalogue: &mut Catalogue, earlier: &Catalogue) {
        if !earlier.prompts.is_empty() {
            catalogue.prompts.clone_from(&earlier.prompts);
            catalogue.prompts_by_name.clone_from(&earlier.prompts_by_name);
        }
    }

    async fn add(
        loading: &mut Loading<'_>,
        definition: Definition<Self>,
        page: &mut Charge,
    ) -> Result<(), Cut> {
        let CatalogueSource { naming, pool, .. } = loading.source;
        let taken = &loading.catalogue.prompts_by_name;
        let name = naming.offered(definition.name(), |name| taken.contains_key(name));

        let offer = |mut listed: model::Prompt| {
            let own_name = std::mem::replace(&mut listed.name, name.clone());
            if own_name != name {
                name_original(&mut listed.meta, &own_name);
            }
            Prompt { own_name, listed }
        };
        if let Some(prompt) = loading.keep(&pool.prompts, &name, definition, page, offer).await? {
            let catalogue = &mut loading.catalogue;
            catalogue.prompts_by_name.insert(name, catalogue.prompts.len());
            catalogue.prompts.push(prompt);
        }
        Ok(())
    }
}

impl Offered for ResourceList {
    fn keep_earlier(catalogue: &mut Catalogue, earlier: &Catalogue) {
        if !earlier.resources.is_empty() {
            catalogue.resources.clone_from(&earlier.resources);
        }
    }

    async fn add(
        loading: &mut Loading<'_>,
        definition: Definition<Self>,
        page: &mut Charge,
    ) -> Result<(), Cut> {
        let CatalogueSource { naming, pool, .. } = loading.source;
        let offer = |mut resource: model::Resource| {
            naming.offer(&mut resource.uri);
            naming.offer_meta(&mut resource.meta);
            resource
        };

        let resource = loading.keep(&pool.resources, "", definition, page, offer).await?;
        loading.catalogue.resources.extend(resource);
        Ok(())
    }
}

impl Offered for TemplateList {
    fn keep_earlier(catalogue: &mut Catalogue, earlier: &Catalogue) {
        if !earlier.templates.is_empty() {
            catalogue.templates.clone_from(&earlier.templates);
        }
    }

    async fn add(
        loading: &mut Loading<'_>,
        definition: Definition<Self>,
        page: &mut Charge,
    ) -> Result<(), Cut> {
        let CatalogueSource { naming, pool, .. } = loading.source;
        let offer = |mut template: model::ResourceTemplate| {
            naming.offer(&mut template.uri_template);
            naming.offer_meta(&mut template.meta);
            template
        };

        let template = loading.keep(&pool.templates, "", definition, page, offer).await?;
        loading.catalogue.templates.extend(template);
        Ok(())
    }
}

/// Adds the upstream's own name to the metadata of an item that is offered under another one.
fn name_original(meta: &mut Option<model::MetaObject>, own_name: &str) {
    let model::MetaObject(meta) = meta.get_or_insert_default();
    meta.insert(ORIGINAL_NAME.to_owned(), own_name.into());
}

/// The tool that is offered under that name.
fn offered_tool(
    definition: ToolDefinition,
    name: &str,
    settings: &Settings,
    naming: &Naming,
) -> Tool {
    let ToolDefinition { own_name, is_task, mut tool, input } = definition;
    naming.offer_meta(&mut tool.meta);
    tool.name = name.to_owned().into();
    if own_name != name {
        name_original(&mut tool.meta, &own_name);
    }

    let spill = lookup(&settings.spill, &own_name).copied().unwrap_or_default();
    let ttl = lookup(&settings.ttl, &own_name).copied();
    let by_name = |settings: &BTreeMap<String, String>| lookup(settings, &own_name).cloned();
    let provided = ProvidedTool::new(tool, input)
        .with_results(spill, ttl)
        .with_projection(by_name(&settings.project))
        .with_cursor(by_name(&settings.pages))
        .telling_changes(settings.unchanged)
        .fanning_out(settings.fans_out);
    let provided = Arc::new(provided);
    Tool { own_name, is_task, provided }
}
