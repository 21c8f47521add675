//! Prompts: definitions, arguments, messages and completions.

mod completions;
mod definitions;
