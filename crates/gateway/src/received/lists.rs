//! The answers of `tools/list`, `prompts/list`, `resources/list` and `resources/templates/list`.

use std::{marker::PhantomData, sync::Arc};

use larder_protocol::{
    Shape,
    schema::{Validator, listed_as_is},
};
use rmcp::model::{self, JsonObject, ToolAnnotations};
use serde_json::Value;

use super::{
    decoration,
    definition::{LeftOut, log_changed, presentable},
    draft::to_2020_12,
    mend,
    object::Object,
    problem::{Problem, shown},
    result::{Answer, RawResult},
    shapes,
};
use crate::budget::VALUE_BYTES;

/// The most bytes of a cursor.
const CURSOR_BYTES: usize = 16 << 10;

/// A list of an upstream.
pub(crate) trait List {
    const METHOD: &'static str;
    /// The member of a page that has the items.
    const MEMBER: &'static str;
    /// The member of a definition that names the item.
    const KEY: &'static str;
    type Item;

    /// Reads an item.
    fn item(definition: Object) -> Result<Self::Item, LeftOut>;
}

/// A page of a list.
pub(crate) struct Page<L> {
    /// The items, which are not read yet.
    definitions: Vec<Value>,
    pub(crate) next: NextPage,
    list: PhantomData<fn() -> L>,
}

/// The page that follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NextPage {
    /// There is none.
    End,
    /// The page at that cursor: a text, or the number that some upstreams write.
    Cursor(Value),
    /// There may be one, but its cursor cannot be sent back.
    Unclear(Problem),
}

/// The definition of an item as it can be shown, which is not read yet.
pub(crate) struct Definition<L> {
    object: Object,
    list: PhantomData<fn() -> L>,
}

pub(crate) struct ToolList;
pub(crate) struct PromptList;
pub(crate) struct ResourceList;
pub(crate) struct TemplateList;

/// The definition of a tool.
pub(crate) struct ToolDefinition {
    /// The name at the upstream.
    pub(crate) own_name: String,
    /// Whether a legacy upstream runs it only as a task.
    pub(crate) is_task: bool,
    /// The definition. An output schema that does not compile is left out, because clients would
    /// refuse the whole list.
    pub(crate) tool: model::Tool,
    /// The input schema in 2020-12.
    pub(crate) input: Option<JsonObject>,
}

impl<L: List> Answer for Page<L> {
    fn read(result: RawResult) -> Result<Self, Problem> {
        let mut page = result.object()?;
        let definitions = page.take_list(L::MEMBER)?;
        let next = NextPage::of(page.take("nextCursor"));
        Ok(Self { definitions, next, list: PhantomData })
    }
}

impl NextPage {
    /// The page at a cursor. An empty text and `false` are ways to write that there is none.
    pub(crate) fn of(cursor: Option<Value>) -> Self {
        match cursor {
            None | Some(Value::Bool(false)) => Self::End,
            Some(Value::String(text)) if text.is_empty() => Self::End,
            Some(Value::String(text)) if text.len() > CURSOR_BYTES => {
                let expected = format!("nextCursor must have at most {CURSOR_BYTES} bytes");
                Self::Unclear(Problem::of(&expected, &Value::String(text)))
            }
            Some(cursor @ (Value::String(_) | Value::Number(_))) => Self::Cursor(cursor),
            Some(other) => {
                Self::Unclear(Problem::of("nextCursor must be a text or a number", &other))
            }
        }
    }
}

impl<L: List> Page<L> {
    /// The definitions that can be shown, which are not read yet.
    pub(crate) fn definitions(self) -> impl Iterator<Item = Result<Definition<L>, LeftOut>> {
        self.definitions.into_iter().map(Definition::of)
    }
}

impl<L: List> Definition<L> {
    /// A definition as it can be shown.
    pub(crate) fn of(value: Value) -> Result<Self, LeftOut> {
        let object = presentable(value, L::KEY)?;
        if object.text(L::KEY).is_none_or(|name| name.trim().is_empty()) {
            return Err(unnamed(&object, L::KEY));
        }
        Ok(Self { object, list: PhantomData })
    }

    /// The member that names the item, or an empty text.
    pub(crate) fn name(&self) -> &str {
        self.object.text(L::KEY).unwrap_or_default()
    }

    /// The definition as JSON.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        serde_json::to_vec(self.object.members()).unwrap_or_default()
    }

    /// About how much memory the item takes. Its schemas are kept a second time, in 2020-12 and
    /// with previews.
    pub(crate) fn memory(&self) -> usize {
        let members = self.object.members();
        let once: usize = members.iter().map(|(name, value)| name.len() + memory(value)).sum();
        let schemas = ["inputSchema", "outputSchema"].into_iter();
        let again: usize = schemas.filter_map(|name| self.object.get(name)).map(memory).sum();

        VALUE_BYTES + once + again
    }

    /// Reads the item.
    pub(crate) fn read(self) -> Result<L::Item, LeftOut> {
        L::item(self.object)
    }
}

/// The definition of an item without a name. `key` is the member that should have it.
fn unnamed(definition: &Object, key: &str) -> LeftOut {
    let why = match definition.get(key) {
        None => format!("it has no {key}"),
        Some(Value::String(_)) => format!("its {key} is empty"),
        Some(other) => format!("its {key} must be a text, not {}", shown(other)),
    };
    LeftOut::new(&shown(&Value::Object(definition.members().clone())), &why)
}

/// About how much memory a value takes.
fn memory(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(memory).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| name.len() + memory(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

impl List for ToolList {
    const METHOD: &'static str = "tools/list";
    const MEMBER: &'static str = "tools";
    const KEY: &'static str = "name";
    type Item = ToolDefinition;

    fn item(mut tool: Object) -> Result<ToolDefinition, LeftOut> {
        decoration::icons(&mut tool);
        decoration::annotations(&mut tool);
        tool.drop_unfit::<ToolAnnotations>("annotations");
        tool.drop_unfit::<String>("title");
        tool.drop_unfit::<String>("description");
        tool.drop_unfit::<JsonObject>("_meta");
        tool.drop_unfit::<JsonObject>("outputSchema");

        let is_task = tool
            .take_members("execution")
            .is_some_and(|execution| execution.get("taskSupport").is_some_and(|s| s == "required"));

        let name = tool.text(Self::KEY).unwrap_or_default().to_owned();
        mend::input_schema(&mut tool).map_err(|why| LeftOut::new(&name, &why))?;

        let mut tool: model::Tool = named(tool, Self::KEY, &shapes::TOOL)?;
        let own_name = tool.name.clone().into_owned();
        let input = match to_2020_12(Value::Object(JsonObject::clone(&tool.input_schema))) {
            Value::Object(input) => Some(input),
            _ => None,
        };
        tool.input_schema = Arc::new(listed_as_is(&tool.input_schema));
        tool.output_schema = output_schema(&tool, &own_name);
        Ok(ToolDefinition { own_name, is_task, tool, input })
    }
}

fn output_schema(tool: &model::Tool, name: &str) -> Option<Arc<JsonObject>> {
    let own = tool.output_schema.as_ref()?;
    let Value::Object(own) = to_2020_12(Value::Object(JsonObject::clone(own))) else { return None };
    match Validator::for_output(own) {
        Ok(validator) => Some(validator.schema),
        Err(problem) => {
            log_changed(name, "an output schema is left out", &problem);
            None
        }
    }
}

impl List for PromptList {
    const METHOD: &'static str = "prompts/list";
    const MEMBER: &'static str = "prompts";
    const KEY: &'static str = "name";
    type Item = model::Prompt;

    fn item(mut prompt: Object) -> Result<model::Prompt, LeftOut> {
        decoration::icons(&mut prompt);
        prompt.drop_unfit::<String>("title");
        prompt.drop_unfit::<String>("description");
        prompt.drop_unfit::<JsonObject>("_meta");
        decoration::prompt_arguments(&mut prompt);
        named(prompt, Self::KEY, &shapes::PROMPT)
    }
}

impl List for ResourceList {
    const METHOD: &'static str = "resources/list";
    const MEMBER: &'static str = "resources";
    const KEY: &'static str = "uri";
    type Item = model::Resource;

    fn item(mut resource: Object) -> Result<model::Resource, LeftOut> {
        resource.drop_unfit::<u64>("size");
        named(decorated(resource, Self::KEY), Self::KEY, &shapes::RESOURCE)
    }
}

impl List for TemplateList {
    const METHOD: &'static str = "resources/templates/list";
    const MEMBER: &'static str = "resourceTemplates";
    const KEY: &'static str = "uriTemplate";
    type Item = model::ResourceTemplate;

    fn item(template: Object) -> Result<model::ResourceTemplate, LeftOut> {
        named(decorated(template, Self::KEY), Self::KEY, &shapes::TEMPLATE)
    }
}

/// A resource or template without what decorates it in a form that does not fit. `key` is the member
/// with its URI.
fn decorated(mut item: Object, key: &str) -> Object {
    decoration::name_by_uri(&mut item, key);
    decoration::icons(&mut item);
    decoration::hints_for_readers(&mut item);
    item.drop_unfit::<JsonObject>("_meta");
    for member in ["title", "description", "mimeType"] {
        item.drop_unfit::<String>(member);
    }
    item
}

/// The definition as that type, with the members that the type does not have in its metadata. `key`
/// is the member that names it.
fn named<T: serde::de::DeserializeOwned>(
    mut item: Object,
    key: &str,
    shape: &Shape,
) -> Result<T, LeftOut> {
    let name = item.text(key).unwrap_or_default().to_owned();
    let others = item.take_others(shape);
    item.carry(others);
    item.parse("its definition").map_err(|problem| LeftOut::new(&name, &problem.to_string()))
}
