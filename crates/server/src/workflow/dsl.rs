//! The items that definitions of workflows need: `use larder::workflow::dsl::*`.

pub use super::{
    ArgumentKind, Condition, DataSource, OnError, ResourceHandle, SequentialWorkflow, ToolHandle,
    WorkflowStep, constant, equals, exists, field, from_step, item, item_field, not_equals, one_of,
    prompt_arg, read_resource, read_resources, template,
};
