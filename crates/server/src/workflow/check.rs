//! Checks a workflow against the catalogue before it runs, and reports all
//! problems at once.

mod items;

use std::{collections::BTreeSet, fmt};

use larder_protocol::{
    near,
    quote::quoted,
    uri_template::parse::{TemplatePiece, prose_pieces},
};

use super::{DataSource, SequentialWorkflow, WorkflowStep, path::FieldPath, source::Origin};
use crate::registry::KnownItems;

/// A problem of a workflow, and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The name of the workflow.
    pub workflow: String,
    /// The name of the step, if the problem is in one.
    pub step: Option<String>,
    /// The problem, in words for the author.
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

/// The findings of the check of a workflow.
#[derive(Default)]
pub(super) struct Findings {
    /// The faults with which the server does not start.
    pub(super) problems: Vec<Problem>,
    /// Faults by the lists that an upstream has sent last, which may be out of date.
    pub(super) warnings: Vec<Problem>,
}

/// Checks a workflow on a server with these items.
pub(super) fn check(workflow: &SequentialWorkflow, known: &KnownItems<'_>) -> Findings {
    let mut check = WorkflowCheck { workflow, known, found: Findings::default() };
    check.workflow();
    for (index, step) in workflow.steps.iter().enumerate() {
        check.step(index, step);
    }
    check.found
}

struct WorkflowCheck<'a> {
    workflow: &'a SequentialWorkflow,
    known: &'a KnownItems<'a>,
    found: Findings,
}

impl WorkflowCheck<'_> {
    fn problem(&self, step: Option<&WorkflowStep>, message: impl Into<String>) -> Problem {
        let workflow = self.workflow.name.clone();
        Problem { workflow, step: step.map(|s| s.name.clone()), message: message.into() }
    }

    fn report(&mut self, step: Option<&WorkflowStep>, message: impl Into<String>) {
        let problem = self.problem(step, message);
        self.found.problems.push(problem);
    }

    /// Reports what is wrong by lists that may be out of date.
    fn warn(&mut self, step: &WorkflowStep, message: impl Into<String>) {
        let warning = self.problem(Some(step), message);
        self.found.warnings.push(warning);
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

        if workflow.also.is_some()
            && let Some(way) = self.known.cycle(&workflow.name)
            && !way.is_empty()
        {
            let way = way.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
            self.report(None, format!("it calls itself by way of {way}, which would never end"));
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
            let TemplatePiece::Expression(name) = piece else { continue };
            if !workflow.arguments.iter().any(|a| a.name == name) {
                self.undeclared(step, &format!("its guidance, {{{name}}},"), name);
            }
        }
    }

    fn undeclared(&mut self, step: &WorkflowStep, location: &str, name: &str) {
        let declared: Vec<_> = self.workflow.arguments.iter().map(|a| a.name.as_str()).collect();
        let near = near::suggestion(name, declared.iter().copied());
        self.report(
            Some(step),
            format!(
                "{location} uses the prompt's argument {name:?}, which is not declared (declared: {}).{near}",
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
            Origin::Step { binding, field } => {
                self.binding(index, step, location, binding, has_default);
                self.path(step, location, field.as_ref());
            }
            Origin::Item { field } => {
                if step.for_each.as_ref().is_none_or(|each| each.over.is_none())
                    || !location.starts_with("the variable")
                {
                    self.report(
                        Some(step),
                        format!(
                            "{location} uses an item, which only the variables of a step have that goes over items: add .for_each_over(…), in a file for_each = {{ over = … }}"
                        ),
                    );
                }
                self.path(step, location, field.as_ref());
            }
            Origin::Template { text, bindings } => {
                let bound: BTreeSet<_> = bindings.keys().map(String::as_str).collect();
                self.template(step, location, text, &bound);
            }
        }
    }

    fn path(&mut self, step: &WorkflowStep, location: &str, path: Option<&FieldPath>) {
        if let Some(path) = path
            && let Some(problem) = path.problem()
        {
            let problem = format!("{location} has the field {:?}: {problem}", path.text());
            self.report(Some(step), problem);
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
            let near = near::suggestion(binding, bound.iter().copied());
            let bound = listed(&bound);
            let problem = format!(
                "{location} uses {binding:?}, which no step binds (bound before: {bound}).{near}"
            );
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
                TemplatePiece::Expression(name) => Some(name),
                TemplatePiece::Text(_) => None,
            })
            .collect();

        for name in bound.difference(&variables) {
            let problem = format!("{location} binds {name:?}, which its text does not use");
            self.report(Some(step), problem);
        }
        for name in variables.difference(bound) {
            let near = near::suggestion(name, bound.iter().copied());
            let problem =
                format!("{location} uses {{{name}}} in its text, but does not bind it.{near}");
            self.report(Some(step), problem);
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
