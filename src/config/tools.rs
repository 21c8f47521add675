//! `[tools]`: the built-in tools and the size of results.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use larder_runtime::environment::absolute_path;
use larder_server::{
    registry::{OutputRules, Spill, ToolSet},
    tools::BUILT_IN_TOOLS,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::ConfigError;

/// `[tools]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// Offer the tools that create, update, delete and share resources.
    pub write: bool,
    /// The built-in tools that are listed; others can be called all the same. `"auto"`: in front of
    /// upstreams read_resource, search_resource and query_resource, or only find_tools and call_tool
    /// where tools are found; without upstreams all. `"reading"`: the tools that read. `"all"`, or a list of names,
    /// with read_resource in front of upstreams.
    #[schemars(with = "ListedTools")]
    pub set: ToolsSet,
    /// List the output schemas of the built-in tools, which take more bytes than all else of their
    /// definitions.
    pub output_schemas: bool,
    /// Let a call ask for a part of the result by the argument `_larder`, which the list adds to the
    /// tools of upstreams. Needs `query.enabled`.
    pub projections: bool,
    /// How a model gets to know the tools of upstreams: `"all"` are listed, or with `"search"` it
    /// looks for them, and for built-in ones, with find_tools and calls them with call_tool.
    pub listing: ToolListing,
    /// The folder in which is kept what upstreams offer, so that it is listed before they have
    /// started: `"auto"` is the folder of the user for caches, `"off"` is none.
    pub catalogue_cache: String,

    /// Largest text result of a tool in bytes, at least 2000. A larger result is stored as a
    /// resource and replaced by a preview with its URI.
    pub output_bytes: usize,
    /// The limit of images and audio, in bytes of base64.
    pub media_bytes: usize,
    /// The most bytes of text in the prompt of a workflow as a whole, at least 2000. What does not
    /// fit is replaced by a preview or a link.
    pub prompt_bytes: usize,
    /// The most bytes of the text that shows a stored result: type, size, columns, the first and last
    /// lines, and the next calls. At least 1000.
    pub preview_bytes: usize,

    /// `output_bytes` for certain clients, by the name that the client reports. A trailing *
    /// matches any ending.
    pub clients: BTreeMap<String, usize>,
    /// When the results of a tool are stored: `"auto"` (when they exceed `output_bytes`),
    /// `"always"` or `"never"`. By tool name; a trailing * matches any ending.
    pub spill: BTreeMap<String, Spill>,
}

/// How the tools of upstreams are offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolListing {
    /// All of them are listed.
    #[default]
    All,
    /// They are found by find_tools and called by call_tool.
    Search,
}

/// The built-in tools that are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolsSet {
    /// The tools that stored results of upstreams need, unless tools are found; all tools if there
    /// are no upstreams.
    #[default]
    Auto,
    /// The tools that read.
    Reading,
    /// All.
    All,
    /// The tools with these names.
    Named(BTreeSet<String>),
}

/// The forms of [`ToolsSet`] in the configuration.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum ListedTools {
    Keyword(String),
    Names(BTreeSet<String>),
}

impl ToolsSet {
    /// The set as the registry takes it.
    pub fn tool_set(&self) -> ToolSet {
        match self {
            Self::Auto => ToolSet::Auto,
            Self::Reading => ToolSet::Reading,
            Self::All => ToolSet::All,
            Self::Named(names) => ToolSet::Named(names.clone()),
        }
    }

    /// The name that is not one of a built-in tool.
    fn unknown(&self) -> Option<&str> {
        let Self::Named(names) = self else { return None };
        names.iter().map(String::as_str).find(|name| !BUILT_IN_TOOLS.contains(name))
    }
}

impl Serialize for ToolsSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Reading => serializer.serialize_str("reading"),
            Self::All => serializer.serialize_str("all"),
            Self::Named(names) => names.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for ToolsSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = "it must be \"auto\", \"reading\", \"all\" or a list of names of tools";
        match ListedTools::deserialize(deserializer).map_err(|_| D::Error::custom(wrong))? {
            ListedTools::Names(names) => Ok(Self::Named(names)),
            ListedTools::Keyword(word) => match word.as_str() {
                "auto" => Ok(Self::Auto),
                "reading" => Ok(Self::Reading),
                "all" => Ok(Self::All),
                _ => Err(D::Error::custom(wrong)),
            },
        }
    }
}

impl ToolsConfig {
    /// Checks the list of tools of a server in front of others.
    ///
    /// # Errors
    /// Names the setting.
    pub(super) fn check_in_front(&self) -> Result<(), ConfigError> {
        match &self.set {
            // Results that are too large are stored, and would be lost for the model.
            ToolsSet::Named(names)
                if self.listing == ToolListing::All && !names.contains("read_resource") =>
            {
                Err(ConfigError::new(
                    "tools.set",
                    "with upstreams it must have read_resource, which reads their stored results",
                ))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.catalogue_cache.is_empty() {
            let problem = "it must be \"auto\", \"off\" or a folder";
            return Err(ConfigError::new("tools.catalogue_cache", problem));
        }

        if let Some(name) = self.set.unknown() {
            let known = BUILT_IN_TOOLS.join(", ");
            let problem = format!("there is no built-in tool {name}; there are {known}");
            return Err(ConfigError::new("tools.set", problem));
        }

        let mut budgets = vec![
            ("tools.output_bytes".to_owned(), self.output_bytes),
            ("tools.prompt_bytes".to_owned(), self.prompt_bytes),
        ];

        let clients = self.clients.iter();
        budgets.extend(clients.map(|(client, bytes)| (format!("tools.clients.{client}"), *bytes)));

        if self.preview_bytes < 1_000 {
            return Err(ConfigError::new("tools.preview_bytes", "it must be at least 1000"));
        }

        // A preview needs at least this many bytes.
        match budgets.iter().find(|(_, bytes)| *bytes < 2_000) {
            Some((setting, _)) => Err(ConfigError::new(setting, "it must be at least 2000")),
            None => Ok(()),
        }
    }

    /// The folder in which is kept what upstreams offer. `None` if it is not kept.
    pub fn catalogue_folder(&self) -> Option<PathBuf> {
        match self.catalogue_cache.as_str() {
            "off" => None,
            "auto" => Some(user_caches()?.join("larder").join("catalogues")),
            folder => Some(folder.into()),
        }
    }

    /// The rules for the size of results.
    pub fn output(&self) -> OutputRules {
        OutputRules {
            output_bytes: self.output_bytes,
            media_bytes: self.media_bytes,
            prompt_bytes: self.prompt_bytes,
            preview_bytes: self.preview_bytes,
            own_schemas: self.output_schemas,
            clients: self.clients.clone(),
            tools: self.spill.clone(),
        }
    }
}

/// The user's folder for caches.
pub(crate) fn user_caches() -> Option<PathBuf> {
    if cfg!(windows) {
        return absolute_path("LOCALAPPDATA");
    }

    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    absolute_path("XDG_CACHE_HOME").or_else(|| Some(absolute_path("HOME")?.join(below_home)))
}

impl Default for ToolsConfig {
    fn default() -> Self {
        let rules = OutputRules::default();
        Self {
            write: true,
            set: ToolsSet::Auto,
            output_schemas: rules.own_schemas,
            projections: true,
            listing: ToolListing::All,
            catalogue_cache: "auto".into(),
            output_bytes: rules.output_bytes,
            media_bytes: rules.media_bytes,
            prompt_bytes: rules.prompt_bytes,
            preview_bytes: rules.preview_bytes,
            clients: rules.clients,
            spill: rules.tools,
        }
    }
}
