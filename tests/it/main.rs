//! The server as its clients meet it: over sockets, pipes and signals.

#![allow(clippy::unwrap_used)]

mod architecture;
mod arguments;
mod bad_input;
mod calls;
mod changes_legacy;
mod changes_modern;
mod curl;
mod eras;
mod example_servers;
mod guards;
mod header_rules;
mod legacy_calls;
mod legacy_sessions;
mod legacy_streams;
mod listings;
mod paging;
mod process;
mod readme;
mod redis;
mod redis_migrations;
mod replicas;
mod resources;
mod sdk;
mod shutdown;
mod stateless_rules;
mod stdio;
mod support;
mod time;
mod workflow_checks;
mod workflows;
