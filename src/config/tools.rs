//! `[tools]`: the built-in tools and the size of results.

use std::{collections::BTreeMap, path::PathBuf};

use larder_runtime::environment::variable_os;
use larder_server::registry::{OutputRules, Spill};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// `[tools]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// Offer the tools that create, update, delete and share resources.
    pub write: bool,
    /// How a model gets to know the tools of upstreams: `"all"` are listed, or with `"search"` it
    /// looks for them with find_tools and calls them with call_tool.
    pub listing: ToolListing,
    /// The folder in which is kept what upstreams offer, so that it is listed before they have
    /// started: `"auto"` is the folder of the user for caches, `"off"` is none.
    pub catalogue_cache: String,

    /// Largest text result of a tool in bytes, at least 2000. A larger result is stored as a
    /// resource and replaced by a preview with its URI.
    pub output_bytes: usize,
    /// The same limit for images and audio, in bytes of base64.
    pub media_bytes: usize,
    /// The most bytes of text in the prompt of a workflow as a whole, at least 2000. What does not
    /// fit is replaced by a preview or a link.
    pub prompt_bytes: usize,

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

impl ToolsConfig {
    /// # Errors
    /// Names the setting.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.catalogue_cache.is_empty() {
            let problem = "it must be \"auto\", \"off\" or a folder";
            return Err(ConfigError::new("tools.catalogue_cache", problem));
        }

        let mut budgets = vec![
            ("tools.output_bytes".to_owned(), self.output_bytes),
            ("tools.prompt_bytes".to_owned(), self.prompt_bytes),
        ];

        let clients = self.clients.iter();
        budgets.extend(clients.map(|(client, bytes)| (format!("tools.clients.{client}"), *bytes)));

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
            clients: self.clients.clone(),
            tools: self.spill.clone(),
        }
    }
}

/// The user's folder for caches.
fn user_caches() -> Option<PathBuf> {
    let folder =
        |name: &str| variable_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return folder("LOCALAPPDATA");
    }

    let below_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(below_home)))
}

impl Default for ToolsConfig {
    fn default() -> Self {
        let rules = OutputRules::default();
        Self {
            write: true,
            listing: ToolListing::All,
            catalogue_cache: "auto".into(),
            output_bytes: rules.output_bytes,
            media_bytes: rules.media_bytes,
            prompt_bytes: rules.prompt_bytes,
            clients: rules.clients,
            spill: rules.tools,
        }
    }
}
