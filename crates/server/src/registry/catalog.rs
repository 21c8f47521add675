//! [`Catalog`]: the items that a server offers at one time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use larder_oauth::Scopes;
use rmcp::model;

use super::{collection::Collection, prompt, resource, template, tool};

/// The tools, prompts, resources and templates at one time.
#[derive(Clone, Default)]
pub struct Catalog {
    pub(super) tools: Collection<tool::RegisteredTool>,
    pub(super) prompts: Collection<prompt::RegisteredPrompt>,
    pub(super) resources: Collection<resource::RegisteredResource>,
    pub(super) templates: Collection<template::RegisteredTemplate>,
    /// The tools that the tool of a workflow calls, by its name.
    pub(super) workflow_calls: Arc<BTreeMap<String, BTreeSet<String>>>,
}

impl Catalog {
    /// Whether there are tools.
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    /// Whether there are prompts.
    pub fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// Whether arguments can be completed.
    pub fn has_completions(&self) -> bool {
        !self.templates.is_empty() || self.prompts.iter().any(|p| !p.body.completers.is_empty())
    }

    /// Whether the prompt or template of a completion request is registered.
    pub(super) fn has_reference(&self, reference: &model::Reference) -> bool {
        reference.as_prompt_name().is_some_and(|name| self.prompts.get(name).is_some())
            || reference.as_resource_uri().is_some_and(|uri| self.templates.get(uri).is_some())
    }

    /// The schema by which the tool's arguments are checked, if the tool exists. Lists have a
    /// plainer form of it.
    pub fn input_schema(&self, tool: &str) -> Option<Arc<model::JsonObject>> {
        self.tools.get(tool).map(|tool| tool.input_schema())
    }

    /// The tools of workflows by way of which the tool of a workflow calls itself.
    pub(super) fn cycle(&self, tool: &str) -> Option<Vec<String>> {
        let mut seen = BTreeSet::new();
        let mut open = vec![vec![tool.to_owned()]];
        while let Some(path) = open.pop() {
            let called = path.last().and_then(|last| self.workflow_calls.get(last));
            for next in called.into_iter().flatten() {
                if next == tool {
                    return Some(path[1..].to_vec());
                }
                if seen.insert(next.as_str()) {
                    open.push(path.iter().chain([next]).cloned().collect());
                }
            }
        }
        None
    }

    /// Whether a resource has that URI or a template matches it.
    pub fn covers(&self, uri: &str) -> bool {
        self.resource(uri).is_some()
            || self.templates.iter().any(|t| t.body.template.matches(uri).is_some())
    }

    /// All static resources, in the order of registration.
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &model::Resource> {
        self.resources.iter().map(|r| &r.listed)
    }

    /// The list entry of a static resource with its current size and time of
    /// change, as far as these are known without reading it.
    pub async fn with_current_stat(&self, resource: &model::Resource) -> model::Resource {
        match self.resources.get(&resource.uri) {
            Some(registered) => registered.current_entry().await,
            None => resource.clone(),
        }
    }

    /// The resource with this URI. An authority with an empty path and one with
    /// the path `/` are equivalent (RFC 3986, 6.2.3). Scope checks and reads
    /// both use this method, so that they find the same resource.
    pub(super) fn resource(&self, uri: &str) -> Option<&Arc<resource::RegisteredResource>> {
        self.resources.get(uri).or_else(|| {
            let (_, rest) = uri.split_once("://")?;
            match rest.find(['/', '?', '#']) {
                None => self.resources.get(&format!("{uri}/")),
                Some(index) if &rest[index..] == "/" => self.resources.get(uri.strip_suffix('/')?),
                Some(_) => None,
            }
        })
    }

    /// The templates, in the order of registration.
    pub fn templates(&self) -> impl ExactSizeIterator<Item = &model::ResourceTemplate> {
        self.templates.iter().map(|t| &t.listed)
    }

    /// Each item's key, and the scopes of its definition.
    pub(super) fn scopes(&self) -> impl Iterator<Item = (&str, &Scopes)> {
        let tools = self.tools.iter().map(|t| (&*t.listed.name, &t.scopes));
        let prompts = self.prompts.iter().map(|p| (&*p.listed.name, &p.scopes));
        let resources = self.resources.iter().map(|r| (&*r.listed.uri, &r.scopes));
        let templates = self.templates.iter().map(|t| (&*t.listed.uri_template, &t.scopes));

        tools.chain(prompts).chain(resources).chain(templates)
    }
}
