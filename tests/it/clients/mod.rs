//! Other clients and transports: the official SDK, stdio, the terminal, and MCP hosts.

mod hosts;
mod sdk;
mod stdio;
mod terminal;
mod wrap;
