//! The answers of `tools/list`, `prompts/list`, `resources/list` and `resources/templates/list`.

use std::marker::PhantomData;

use rmcp::model::{self, Icon, JsonObject, ToolAnnotations};
use serde_json::Value;

use super::{
    definition::{LeftOut, presentable},
    draft::to_2020_12,
    object::Object,
    problem::Problem,
    result::{Answer, RawResult},
};
use crate::schema::Validator;

/// A list of an upstream.
pub(in crate::upstream) trait List {
    const METHOD: &'static str;
    /// The member of a page that has the items.
    const MEMBER: &'static str;
    type Item;

    /// Reads an item.
    fn item(definition: Value) -> Result<Self::Item, LeftOut>;
}

/// A page of a list.
pub(in crate::upstream) struct Page<L> {
    /// The items, which are not read yet.
    definitions: Vec<Value>,
    /// The cursor of the next page.
    pub(in crate::upstream) next: Option<String>,
    list: PhantomData<fn() -> L>,
}

pub(in crate::upstream) struct ToolList;
pub(in crate::upstream) struct PromptList;
pub(in crate::upstream) struct ResourceList;
pub(in crate::upstream) struct TemplateList;

/// The definition of a tool.
pub(in crate::upstream) struct ToolDefinition {
    /// Its name there.
    pub(in crate::upstream) own_name: String,
    /// Whether a legacy upstream runs it only as a task.
    pub(in crate::upstream) is_task: bool,
    /// The definition. An output schema that does not compile is left out, because clients would
    /// refuse the whole list.
    pub(in crate::upstream) tool: model::Tool,
    /// The input schema in 2020-12.
    pub(in crate::upstream) input: Option<JsonObject>,
}

impl<L: List> Answer for Page<L> {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut page = result.object()?;
        let definitions = page.take_list(L::MEMBER)?;
        let next = match page.take("nextCursor") {
            None => None,
            Some(Value::String(cursor)) => Some(cursor).filter(|cursor| !cursor.is_empty()),
            Some(other) => return Err(Problem::of("nextCursor must be a text", &other)),
        };
        Ok(Self { definitions, next, list: PhantomData })
    }
}

impl<L: List> Page<L> {
    /// Reads its items.
    pub(in crate::upstream) fn items(self) -> impl Iterator<Item = Result<L::Item, LeftOut>> {
        self.definitions.into_iter().map(L::item)
    }
}

impl List for ToolList {
    const METHOD: &'static str = "tools/list";
    const MEMBER: &'static str = "tools";
    type Item = ToolDefinition;

    fn item(definition: Value) -> Result<ToolDefinition, LeftOut> {
        let mut tool = presentable(definition, "name")?;
        tool.drop_unfit::<Vec<Icon>>("icons");
        tool.drop_unfit::<ToolAnnotations>("annotations");
        tool.drop_unfit::<String>("title");
        tool.drop_unfit::<String>("description");
        tool.drop_unfit::<JsonObject>("_meta");
        tool.drop_unfit::<JsonObject>("outputSchema");
        let is_task = tool
            .take_members("execution")
            .is_some_and(|execution| execution.get("taskSupport").is_some_and(|s| s == "required"));
        let mut tool: model::Tool = named(tool, "name")?;
        let own_name = tool.name.clone().into_owned();
        let input = match to_2020_12(Value::Object(JsonObject::clone(&tool.input_schema))) {
            Value::Object(input) => Some(input),
            _ => None,
        };
        tool.output_schema = output_schema(&tool, &own_name);
        Ok(ToolDefinition { own_name, is_task, tool, input })
    }
}

fn output_schema(tool: &model::Tool, name: &str) -> Option<std::sync::Arc<JsonObject>> {
    let own = tool.output_schema.as_ref()?;
    let Value::Object(own) = to_2020_12(Value::Object(JsonObject::clone(own))) else { return None };
    match Validator::for_output(own) {
        Ok(validator) => Some(validator.schema),
        Err(problem) => {
            tracing::warn!(tool = name, problem, "an output schema is left out");
            None
        }
    }
}

impl List for PromptList {
    const METHOD: &'static str = "prompts/list";
    const MEMBER: &'static str = "prompts";
    type Item = model::Prompt;

    fn item(definition: Value) -> Result<model::Prompt, LeftOut> {
        let mut prompt = presentable(definition, "name")?;
        prompt.drop_unfit::<Vec<Icon>>("icons");
        prompt.drop_unfit::<String>("title");
        prompt.drop_unfit::<String>("description");
        prompt.drop_unfit::<JsonObject>("_meta");
        named(prompt, "name")
    }
}

impl List for ResourceList {
    const METHOD: &'static str = "resources/list";
    const MEMBER: &'static str = "resources";
    type Item = model::Resource;

    fn item(definition: Value) -> Result<model::Resource, LeftOut> {
        let mut resource = presentable(definition, "uri")?;
        resource.drop_unfit::<u64>("size");
        named(decorated(resource), "uri")
    }
}

impl List for TemplateList {
    const METHOD: &'static str = "resources/templates/list";
    const MEMBER: &'static str = "resourceTemplates";
    type Item = model::ResourceTemplate;

    fn item(definition: Value) -> Result<model::ResourceTemplate, LeftOut> {
        named(decorated(presentable(definition, "uriTemplate")?), "uriTemplate")
    }
}

/// A resource or template without what decorates it in a form that does not fit.
fn decorated(mut item: Object) -> Object {
    item.drop_unfit::<Vec<Icon>>("icons");
    item.drop_unfit::<model::Annotations>("annotations");
    item.drop_unfit::<JsonObject>("_meta");
    for member in ["title", "description", "mimeType"] {
        item.drop_unfit::<String>(member);
    }
    item
}

/// The definition as that type. `key` is the member that names it.
fn named<T: serde::de::DeserializeOwned>(item: Object, key: &str) -> Result<T, LeftOut> {
    let name = item.text(key).unwrap_or_default().to_owned();
    item.parse("its definition").map_err(|problem| LeftOut::new(&name, &problem.to_string()))
}
