//! [`CatalogueRecord`]: the definitions of an upstream as it sent them, from which the same catalogue can be
//! made again without it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::received::{Definition, List, PromptList, ResourceList, TemplateList};

/// The most bytes of the definitions of one record.
const RECORD_BYTES: usize = 2 << 20;

/// The definitions of the lists that are being read.
#[derive(Default)]
pub(super) struct CatalogueRecord {
    /// Tools, prompts, resources and templates: JSON, separated by commas.
    lists: [Vec<u8>; 4],
    /// Whether the definitions are not wanted, or are too long.
    is_over: bool,
}

impl CatalogueRecord {
    /// A record of nothing.
    pub(super) fn off() -> Self {
        Self { is_over: true, ..Self::default() }
    }

    /// Adds a definition to its list.
    pub(super) fn add<L: List>(&mut self, definition: &Definition<L>) {
        if self.is_over {
            return;
        }

        let definition = definition.encoded();
        let bytes: usize = self.lists.iter().map(Vec::len).sum();
        if bytes + definition.len() > RECORD_BYTES {
            *self = Self::off();
            return;
        }

        let list = match L::METHOD {
            PromptList::METHOD => &mut self.lists[1],
            ResourceList::METHOD => &mut self.lists[2],
            TemplateList::METHOD => &mut self.lists[3],
            _ => &mut self.lists[0],
        };
        if !list.is_empty() {
            list.push(b',');
        }
        list.extend_from_slice(&definition);
    }

    /// The record as JSON: the members of [`Recorded`]. `None` if it is too large.
    pub(super) fn complete(self, instructions: Option<&str>) -> Option<String> {
        if self.is_over {
            return None;
        }
        let [tools, prompts, resources, templates] = self.lists.map(String::from_utf8);
        Some(format!(
            r#"{{"tools":[{}],"prompts":[{}],"resources":[{}],"templates":[{}],"instructions":{}}}"#,
            tools.ok()?,
            prompts.ok()?,
            resources.ok()?,
            templates.ok()?,
            json!(instructions),
        ))
    }
}

/// A record that is read again.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(super) tools: Vec<Value>,
    pub(super) prompts: Vec<Value>,
    pub(super) resources: Vec<Value>,
    pub(super) templates: Vec<Value>,
    #[serde(default)]
    pub(super) instructions: Option<Arc<str>>,
}
