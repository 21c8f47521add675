//! The server as its clients meet it: over sockets, pipes and signals.

#![allow(clippy::unwrap_used)]

mod architecture;
mod arguments;
mod asking;
mod asking_by_rounds;
mod asking_in_sessions;
mod auth;
mod bad_input;
mod calls;
mod changes_legacy;
mod changes_modern;
mod completions;
mod curl;
mod edits;
mod eras;
mod example_servers;
mod examples;
mod files;
mod guards;
mod header_parameters;
mod header_rules;
mod legacy_calls;
mod legacy_sessions;
mod legacy_streams;
mod listings;
mod logging;
mod pages;
mod paging;
mod process;
mod prompts;
mod readme;
mod redis;
mod redis_migrations;
mod replicas;
mod resources;
mod returns;
mod sdk;
mod shutdown;
mod spill;
mod stateless_rules;
mod stdio;
mod support;
mod tasks;
mod time;
mod workflows;
