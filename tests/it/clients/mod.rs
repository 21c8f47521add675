//! Other clients and transports: the official SDK, stdio, the terminal, and MCP hosts.

mod any_server;
mod hosts;
mod looks;
mod mistakes;
mod sdk;
mod stdio;
mod terminal;
mod wrap;
