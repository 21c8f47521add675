//! The server as its clients meet it: over sockets, pipes and signals.

#![allow(clippy::unwrap_used)]

mod apps;
mod architecture;
mod asking;
mod auth;
mod changes;
mod clients;
mod code;
mod console;
mod content;
mod docs;
mod examples;
mod identity;
mod instances;
mod login;
mod operations;
mod prompts;
mod protocol;
mod readme;
mod resources;
mod runner;
mod sessions;
mod sharing;
mod spill;
mod storage;
mod support;
mod tasks;
mod tools;
mod upstreams;
mod workflows;

use support::process;
