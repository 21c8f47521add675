//! Checks the tools and resources that a step names.

use std::collections::BTreeMap;

use larder_protocol::near;
use rmcp::model::JsonObject;
use serde_json::Value;

use super::{WorkflowCheck, listed};
use crate::{
    registry::{ItemName, Lookup},
    workflow::{
        ResourceHandle, WorkflowStep,
        step::{ForEach, MAX_LIMIT},
    },
};

impl WorkflowCheck<'_> {
    pub(super) fn tool(&mut self, step: &WorkflowStep) {
        let Some(tool) = &step.tool else {
            if !step.arguments.is_empty() {
                self.report(Some(step), "it has arguments, but no tool");
            }
            if step.retry.is_some() {
                self.report(Some(step), "only a tool call can be retried, and it has no tool");
            }
            return;
        };

        if step.retry.as_ref().is_some_and(|retry| retry.attempts == 0) {
            self.report(Some(step), "retry needs at least one attempt");
        }
        if step.for_each.is_some() {
            self.report(Some(step), "for_each is for resources; a step with a tool cannot use it");
        }

        if self.workflow.also.is_some() && *tool == self.workflow.name {
            self.report(Some(step), "it calls its own workflow, which would never end");
            return;
        }

        match self.known.look_up(ItemName::Tool(tool)) {
            Lookup::Found { schema: Some(schema), is_own } => {
                for problem in misfits(step, tool, &schema) {
                    // The schema of an upstream may be another one by now.
                    if is_own {
                        self.report(Some(step), problem);
                    } else {
                        self.warn(step, problem);
                    }
                }
            }
            Lookup::Found { schema: None, .. } | Lookup::Unknown => {}
            Lookup::Missing { hint } => {
                let problem = format!(
                    "the upstream did not have the tool {tool:?} when it was listed last.{hint}"
                );
                self.warn(step, problem);
            }
            Lookup::None { hint } => {
                self.report(Some(step), format!("there is no tool {tool:?}.{hint}"));
            }
        }
    }

    pub(super) fn resources(&mut self, step: &WorkflowStep) {
        let mut used = BTreeMap::new();
        for resource in &step.resources {
            let ResourceHandle::Uri(uri) = resource else { continue };
            let pattern = match uri.pattern() {
                Ok(pattern) => pattern,
                Err(error) => {
                    self.report(Some(step), format!("the URI {:?}: {error}", uri.text()));
                    continue;
                }
            };

            if let Some(uri) = pattern.literal() {
                self.static_resource(step, uri);
            }

            for variable in pattern.variables() {
                used.insert(variable, uri.text());
            }
        }

        for (variable, uri) in &used {
            if !step.template_bindings.contains_key(*variable) {
                self.report(
                    Some(step),
                    format!(
                        "{{{variable}}} in {uri:?} has no value: add .with_template_binding({variable:?}, …), in a file template_bindings = {{ {variable} = … }}"
                    ),
                );
            }
        }

        for variable in step.template_bindings.keys().filter(|v| !used.contains_key(v.as_str())) {
            self.report(Some(step), format!("{variable:?} is bound, but is in none of its URIs"));
        }

        if let Some(each) = &step.for_each {
            self.for_each(step, each);
        }
    }

    fn static_resource(&mut self, step: &WorkflowStep, uri: &str) {
        match self.known.look_up(ItemName::Resource(uri)) {
            Lookup::Found { .. } | Lookup::Unknown => {}
            Lookup::Missing { hint } => {
                let problem = format!(
                    "the upstream did not have the resource {uri:?}, or a template for it, when it was listed last.{hint}"
                );
                self.warn(step, problem);
            }
            Lookup::None { hint } => {
                let problem =
                    format!("there is no resource {uri:?}, and no template matches it.{hint}");
                self.report(Some(step), problem);
            }
        }
    }

    fn for_each(&mut self, step: &WorkflowStep, each: &ForEach) {
        let variables = step.template_bindings.len();
        let is_sound = match &each.over {
            _ if step.tool.is_some() || step.resources.len() != 1 => step.tool.is_some(),
            None => variables == 1,
            Some(_) => step
                .template_bindings
                .values()
                .any(|source| source.with_nested().iter().any(|(nested, _)| nested.is_item())),
        };

        if !is_sound {
            let needed = match each.over {
                None => "for_each needs one resource with one variable in its URI",
                Some(_) => {
                    "for_each needs one resource, and an item in a variable of its URI: item(), in a file { item = \"…\" }"
                }
            };
            self.report(Some(step), needed);
        }

        if !(1..=MAX_LIMIT).contains(&each.limit) {
            let problem = format!("the limit of for_each must be from 1 to {MAX_LIMIT}");
            self.report(Some(step), problem);
        }
    }
}

/// The arguments of a step that do not fit the schema of its tool.
fn misfits(step: &WorkflowStep, tool: &str, schema: &JsonObject) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(known) = schema.get("properties").and_then(Value::as_object) {
        for argument in step.arguments.keys().filter(|a| !known.contains_key(*a)) {
            let known: Vec<_> = known.keys().map(String::as_str).collect();
            let near = near::suggestion(argument, known.iter().copied());
            problems.push(format!(
                "the tool {tool:?} has no argument {argument:?} (it has: {}).{near}",
                listed(&known)
            ));
        }
    }

    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for argument in required.filter_map(Value::as_str) {
        if !step.arguments.contains_key(argument) {
            problems.push(format!("the tool {tool:?} needs the argument {argument:?}"));
        }
    }
    problems
}
