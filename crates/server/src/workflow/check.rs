//! Checks a workflow against the catalogue before it runs, and reports all
//! problems at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use larder_protocol::uri_template::parse::{Piece, prose_pieces};
use serde_json::Value;

use super::{DataSource, ResourceHandle, SequentialWorkflow, WorkflowStep, source::Origin};
use crate::registry::Catalog;

/// A problem of a workflow, and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The name of the workflow.
    pub workflow: String,
    /// The name of the step, if the problem is in one.
    pub step: Option<String>,
    /// What is wrong.
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

/// All problems of a workflow on a server with this catalogue.
pub fn problems(workflow: &SequentialWorkflow, catalog: &Catalog) -> Vec<Problem> {
    let mut check = Check { workflow, catalog, problems: Vec::new() };
    check.workflow();
    for (index, step) in workflow.steps.iter().enumerate() {
        check.step(index, step);
    }
    check.problems
}

struct Check<'a> {
    workflow: &'a SequentialWorkflow,
    catalog: &'a Catalog,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn report(&mut self, step: Option<&WorkflowStep>, message: impl Into<String>) {
        let (workflow, step) = (self.workflow.name.clone(), step.map(|s| s.name.clone()));
        self.problems.push(Problem { workflow, step, message: message.into() });
    }

    fn workflow(&mut self) {
        let workflow = self.workflow;
        if workflow.steps.is_empty() {
            self.report(None, "it has no steps");
        }

        for name in repeated(workflow.arguments.iter().map(|a| a.name.as_str())) {
            self.report(None, format!("the argument {name:?} is declared twice"));
        }
        for name in repeated(workflow.steps.iter().map(|s| s.name.as_str())) {
            self.report(None, format!("two steps have the name {name:?}"));
        }

        let bindings = workflow.steps.iter().filter_map(|s| s.binding.as_deref());
        for name in repeated(bindings) {
            self.report(None, format!("two steps bind {name:?}"));
        }

        if workflow.steps.iter().filter(|s| s.handoff).count() > 1 {
            self.report(
                None,
                "it has several handoffs: the model does all steps after the first one",
            );
        }
    }

    fn step(&mut self, index: usize, step: &WorkflowStep) {
        let acts = step.tool.is_some() || !step.resources.is_empty();
        match (acts, step.handoff) {
            (false, false) => {
                self.report(Some(step), "it neither calls a tool nor reads a resource");
            }
            (true, true) => {
                self.report(Some(step), "a handoff can neither call a tool nor read a resource");
            }
            _ => {}
        }

        for (location, source, has_default) in step.sources() {
            self.source(index, step, &location, source, has_default);
        }

        self.guidance(step);
        self.tool(step);
        self.resources(step);
    }

    /// Guidance inserts arguments of the prompt. Another name would stay as it is written.
    fn guidance(&mut self, step: &WorkflowStep) {
        let workflow = self.workflow;
        for piece in prose_pieces(step.guidance.as_deref().unwrap_or_default()) {
            let Piece::Expression(name) = piece else { continue };
            if !workflow.arguments.iter().any(|a| a.name == name) {
                self.undeclared(step, &format!("its guidance, {{{name}}},"), name);
            }
        }
    }

    fn undeclared(&mut self, step: &WorkflowStep, location: &str, name: &str) {
        let declared: Vec<_> = self.workflow.arguments.iter().map(|a| a.name.as_str()).collect();
        self.report(
            Some(step),
            format!(
                "{location} uses the prompt's argument {name:?}, which is not declared (declared: {})",
                listed(&declared)
            ),
        );
    }

    fn source(
        &mut self,
        index: usize,
        step: &WorkflowStep,
        location: &str,
        source: &DataSource,
        has_default: bool,
    ) {
        let workflow = self.workflow;
        match &source.origin {
            Origin::Constant(_) => {}
            Origin::PromptArg(name) => {
                if !workflow.arguments.iter().any(|a| a.name == *name) {
                    self.undeclared(step, location, name);
                }
            }
            Origin::Step { binding, .. } => {
                self.binding(index, step, location, binding, has_default);
            }
            Origin::Template { text, bindings } => {
                let bound: BTreeSet<_> = bindings.keys().map(String::as_str).collect();
                self.template(step, location, text, &bound);
            }
        }
    }

    /// A step uses what an earlier step binds, whenever that step runs.
    fn binding(
        &mut self,
        index: usize,
        step: &WorkflowStep,
        location: &str,
        binding: &str,
        has_default: bool,
    ) {
        let steps = &self.workflow.steps;
        let Some(binder) = steps.iter().position(|s| s.binding.as_deref() == Some(binding)) else {
            let bound: Vec<_> =
                steps[..index].iter().filter_map(|s| s.binding.as_deref()).collect();
            let bound = listed(&bound);
            let problem =
                format!("{location} uses {binding:?}, which no step binds (bound before: {bound})");
            return self.report(Some(step), problem);
        };

        if binder >= index {
            let name = &steps[binder].name;
            let problem = format!("{location} uses {binding:?} before the step {name:?} binds it");
            return self.report(Some(step), problem);
        }

        let when = &steps[binder].when;
        if when.is_some() && *when != step.when && !has_default {
            self.report(
                Some(step),
                format!(
                    "{location} uses {binding:?} from a step that may be skipped: add a default (.or(…), in a file default = …), or give this step the same condition"
                ),
            );
        }
    }

    /// A template uses exactly what it binds.
    fn template(
        &mut self,
        step: &WorkflowStep,
        location: &str,
        text: &str,
        bound: &BTreeSet<&str>,
    ) {
        let variables: BTreeSet<_> = prose_pieces(text)
            .into_iter()
            .filter_map(|piece| match piece {
                Piece::Expression(name) => Some(name),
                Piece::Text(_) => None,
            })
            .collect();

        for name in bound.difference(&variables) {
            let problem = format!("{location} binds {name:?}, which its text does not use");
            self.report(Some(step), problem);
        }
        for name in variables.difference(bound) {
            let problem = format!("{location} uses {{{name}}} in its text, but does not bind it");
            self.report(Some(step), problem);
        }
    }

    fn tool(&mut self, step: &WorkflowStep) {
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

        let Some(schema) = self.catalog.input_schema(tool) else {
            self.report(Some(step), format!("there is no tool {tool:?}"));
            return;
        };

        if let Some(known) = schema.get("properties").and_then(Value::as_object) {
            for argument in step.arguments.keys().filter(|a| !known.contains_key(*a)) {
                let known: Vec<_> = known.keys().map(String::as_str).collect();
                self.report(
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
                self.report(
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
                    self.report(Some(step), format!("the URI {:?}: {error}", uri.text()));
                    continue;
                }
            };

            if let Some(uri) = pattern.literal()
                && !self.catalog.covers(uri)
            {
                self.report(
                    Some(step),
                    format!("there is no resource {uri:?}, and no template matches it"),
                );
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
            if step.tool.is_none()
                && (step.resources.len() != 1 || step.template_bindings.len() != 1)
            {
                self.report(Some(step), "for_each needs one resource with one variable in its URI");
            }

            if each.limit == 0 {
                self.report(Some(step), "the limit of for_each must be at least 1");
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
