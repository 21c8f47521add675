//! What is wrong with a workflow, all of it at once, before it ever runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::Value;

use super::{DataSource, ResourceHandle, SequentialWorkflow, WorkflowStep, source::Origin};
use crate::{
    registry::Catalog,
    uri_template::parse::{Piece, prose_pieces},
};

/// One thing that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// In which workflow.
    pub workflow: String,
    /// In which step, if in one.
    pub step: Option<String>,
    /// What it is.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Workflow {:?}", self.workflow)?;
        if let Some(step) = &self.step {
            write!(f, ", step {step:?}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Everything that is wrong with a workflow over what the server offers.
pub fn problems(workflow: &SequentialWorkflow, catalog: &Catalog) -> Vec<Problem> {
    let mut check = Check { workflow, catalog, problems: Vec::new() };
    check.whole();
    for (at, step) in workflow.steps.iter().enumerate() {
        check.step(at, step);
    }
    check.problems
}

struct Check<'a> {
    workflow: &'a SequentialWorkflow,
    catalog: &'a Catalog,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn found(&mut self, step: Option<&WorkflowStep>, message: impl Into<String>) {
        let (workflow, step) = (self.workflow.name.clone(), step.map(|s| s.name.clone()));
        self.problems.push(Problem { workflow, step, message: message.into() });
    }

    fn whole(&mut self) {
        let workflow = self.workflow;
        if workflow.steps.is_empty() {
            self.found(None, "it has no steps");
        }
        for twice in repeated(workflow.arguments.iter().map(|a| a.name.as_str())) {
            self.found(None, format!("the argument {twice:?} is declared twice"));
        }
        for twice in repeated(workflow.steps.iter().map(|s| s.name.as_str())) {
            self.found(None, format!("two steps are called {twice:?}"));
        }
        let bindings = workflow.steps.iter().filter_map(|s| s.binding.as_deref());
        for twice in repeated(bindings) {
            self.found(None, format!("two steps bind {twice:?}"));
        }
        if workflow.steps.iter().filter(|s| s.handoff).count() > 1 {
            self.found(
                None,
                "it hands over twice: what comes after the first handoff is the model's",
            );
        }
    }

    fn step(&mut self, at: usize, step: &WorkflowStep) {
        let works = step.tool.is_some() || !step.resources.is_empty();
        match (works, step.handoff) {
            (false, false) => {
                self.found(Some(step), "it neither calls a tool nor reads a resource");
            }
            (true, true) => self.found(Some(step), "it hands over, so it can do nothing itself"),
            _ => {}
        }
        for (place, source) in step.sources() {
            self.source(at, step, &place, source);
        }
        self.tool(step);
        self.resources(step);
    }

    fn source(&mut self, at: usize, step: &WorkflowStep, place: &str, source: &DataSource) {
        let workflow = self.workflow;
        match &source.origin {
            Origin::Constant(_) => {}
            Origin::PromptArg(name) => {
                if !workflow.arguments.iter().any(|a| a.name == *name) {
                    let declared: Vec<_> =
                        workflow.arguments.iter().map(|a| a.name.as_str()).collect();
                    self.found(
                        Some(step),
                        format!(
                            "{place} takes the prompt's argument {name:?}, which is not declared (declared: {})",
                            listed(&declared)
                        ),
                    );
                }
            }
            Origin::Step { binding, .. } => {
                let binder =
                    workflow.steps.iter().position(|s| s.binding.as_ref() == Some(binding));
                match binder {
                    None => {
                        let bound: Vec<_> = workflow.steps[..at]
                            .iter()
                            .filter_map(|s| s.binding.as_deref())
                            .collect();
                        self.found(
                            Some(step),
                            format!(
                                "{place} takes {binding:?}, which no step binds (bound before: {})",
                                listed(&bound)
                            ),
                        );
                    }
                    Some(binder) if binder >= at => {
                        let name = &workflow.steps[binder].name;
                        self.found(
                            Some(step),
                            format!("{place} takes {binding:?} before the step {name:?} binds it"),
                        );
                    }
                    Some(binder) => {
                        let when = &workflow.steps[binder].when;
                        if when.is_some() && *when != step.when && source.default.is_none() {
                            self.found(
                                Some(step),
                                format!(
                                    "{place} takes {binding:?} of a step that may be skipped: give it a default with .or(…), or this step the same condition"
                                ),
                            );
                        }
                    }
                }
            }
            Origin::Template { text, bindings } => {
                let variables: BTreeSet<_> = prose_pieces(text)
                    .into_iter()
                    .filter_map(|piece| match piece {
                        Piece::Expression(name) => Some(name),
                        Piece::Text(_) => None,
                    })
                    .collect();
                for name in bindings.keys().filter(|name| !variables.contains(name.as_str())) {
                    self.found(
                        Some(step),
                        format!("{place} binds {name:?}, which is not in its text"),
                    );
                }
                for name in variables.into_iter().filter(|name| !bindings.contains_key(*name)) {
                    self.found(
                        Some(step),
                        format!("{place} has {{{name}}} in its text and does not bind it"),
                    );
                }
            }
        }
    }

    fn tool(&mut self, step: &WorkflowStep) {
        let Some(tool) = &step.tool else {
            if !step.arguments.is_empty() {
                self.found(Some(step), "it has arguments and no tool to give them to");
            }
            if step.retry.is_some() {
                self.found(Some(step), "only a tool can be tried again, and it has none");
            }
            return;
        };
        if step.retry.as_ref().is_some_and(|retry| retry.attempts == 0) {
            self.found(Some(step), "it must be tried once at least");
        }
        if step.for_each.is_some() {
            self.found(Some(step), "for_each reads resources; a step with a tool cannot have it");
        }
        if self.workflow.also.is_some() && *tool == self.workflow.name {
            self.found(Some(step), "it calls its own workflow, which would never end");
            return;
        }
        let Some(schema) = self.catalog.input_schema(tool) else {
            self.found(Some(step), format!("there is no tool {tool:?}"));
            return;
        };
        if let Some(known) = schema.get("properties").and_then(Value::as_object) {
            for argument in step.arguments.keys().filter(|a| !known.contains_key(*a)) {
                let known: Vec<_> = known.keys().map(String::as_str).collect();
                self.found(
                    Some(step),
                    format!(
                        "the tool {tool:?} has no argument {argument:?} (it has: {})",
                        listed(&known)
                    ),
                );
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for argument in required.filter_map(Value::as_str) {
            if !step.arguments.contains_key(argument) {
                self.found(
                    Some(step),
                    format!("the tool {tool:?} needs the argument {argument:?}"),
                );
            }
        }
    }

    fn resources(&mut self, step: &WorkflowStep) {
        let mut used = BTreeMap::new();
        for resource in &step.resources {
            let ResourceHandle::Uri(uri) = resource else { continue };
            let pattern = match uri.pattern() {
                Ok(pattern) => pattern,
                Err(error) => {
                    self.found(Some(step), format!("the URI {:?}: {error}", uri.text()));
                    continue;
                }
            };
            if let Some(uri) = pattern.literal()
                && !self.catalog.covers(uri)
            {
                self.found(
                    Some(step),
                    format!("there is no resource {uri:?}, and no template covers it"),
                );
            }
            for variable in pattern.variables() {
                used.insert(variable, uri.text());
            }
        }
        for (variable, uri) in &used {
            if !step.template_bindings.contains_key(*variable) {
                self.found(
                    Some(step),
                    format!(
                        "{{{variable}}} in {uri:?} stands for nothing: add .with_template_binding({variable:?}, …)"
                    ),
                );
            }
        }
        for variable in step.template_bindings.keys().filter(|v| !used.contains_key(v.as_str())) {
            self.found(Some(step), format!("{variable:?} is bound and stands in none of its URIs"));
        }
        if let Some(each) = &step.for_each {
            if step.tool.is_none()
                && (step.resources.len() != 1 || step.template_bindings.len() != 1)
            {
                self.found(Some(step), "for_each needs one resource with one variable in its URI");
            }
            if each.limit == 0 {
                self.found(Some(step), "for_each must read one at least");
            }
        }
    }
}

fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(*name)).collect()
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
