//! Completion of a workflow's arguments: values for a URI, or for a variable of a URI, come from
//! the resources that the caller has, here and at the servers behind this one.

use std::collections::{BTreeMap, BTreeSet};

use larder_protocol::uri_template::UriTemplate;
use rmcp::model::Reference;

use super::{
    DataSource, ResourceHandle, SequentialWorkflow, UriPattern, WorkflowStep, source::Origin,
};
use crate::{
    handler::Context,
    registry::{CompletionInput, Prompt},
};

/// The most values of one source of values.
const MAX_VALUES: usize = 100;

/// The place in which an argument's value is inserted as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ArgumentPlace {
    /// A whole URI.
    Uri,
    /// A variable of a pattern.
    Variable { pattern: String, variable: String },
}

/// The prompt of a workflow with completion of the arguments that are inserted in URIs.
pub(super) fn completed<S: Send + Sync + 'static>(
    mut prompt: Prompt<S>,
    workflow: &SequentialWorkflow,
) -> Prompt<S> {
    for argument in &workflow.arguments {
        let places = places(workflow, &argument.name);
        if places.is_empty() {
            continue;
        }

        prompt = prompt.complete(argument.name.clone(), move |ctx: Context<S>, input| {
            let places = places.clone();
            async move {
                let mut values = BTreeSet::new();
                for place in &places {
                    values.extend(suggested(&ctx, place, &input).await);
                }
                values.into_iter().collect()
            }
        });
    }
    prompt
}

fn places(workflow: &SequentialWorkflow, argument: &str) -> Vec<ArgumentPlace> {
    let is_argument = |source: &DataSource| {
        source.transforms.is_empty()
            && matches!(&source.origin, Origin::PromptArg(name) if name == argument)
    };

    let in_step = |step: &WorkflowStep| {
        let mut places = Vec::new();
        for resource in &step.resources {
            match resource {
                ResourceHandle::From { uri } if is_argument(uri) => places.push(ArgumentPlace::Uri),
                ResourceHandle::From { .. } => {}
                ResourceHandle::Uri(uri) => {
                    let variables = uri.pattern().into_iter().flat_map(UriPattern::variables);
                    let bound = variables
                        .filter(|name| step.template_bindings.get(*name).is_some_and(is_argument));
                    places.extend(bound.map(|variable| ArgumentPlace::Variable {
                        pattern: uri.text().to_owned(),
                        variable: variable.to_owned(),
                    }));
                }
            }
        }
        places
    };

    let mut places: Vec<ArgumentPlace> = Vec::new();
    for place in workflow.steps.iter().flat_map(in_step) {
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

async fn suggested<S>(
    ctx: &Context<S>,
    place: &ArgumentPlace,
    input: &CompletionInput,
) -> Vec<String> {
    let scope = ctx.scope();
    let typed = input.value.as_str();
    // A provider that fails costs only its own values.
    let statics = ctx.registry().static_uris(scope).await.unwrap_or_default();

    let (pattern, variable) = match place {
        ArgumentPlace::Uri => {
            let stored = scope.store.list(scope.identity.owner(), typed, None, MAX_VALUES).await;
            let stored = stored.map(|page| page.entries).unwrap_or_default();
            let stored = stored.iter().map(|entry| entry.uri.to_string());
            let statics = statics.into_iter().filter(|uri| uri.starts_with(typed));
            return stored.chain(statics.take(MAX_VALUES)).collect();
        }
        ArgumentPlace::Variable { pattern, variable } => (pattern, variable),
    };

    let reference = Reference::for_resource(pattern.clone());
    // The other arguments of the prompt have other names than the variables of the template.
    let own = CompletionInput { value: input.value.clone(), arguments: BTreeMap::new() };
    let completed =
        Box::pin(ctx.registry().complete(&reference, variable, own, scope.clone())).await;
    let mut values = completed.map(|completed| completed.completion.values).unwrap_or_default();

    let Ok(template) = UriTemplate::parse(pattern) else { return values };
    let matched = statics.iter().filter_map(|uri| template.matches(uri)?.remove(variable));
    values.extend(matched.filter(|value| value.starts_with(typed)).take(MAX_VALUES));
    values
}
