//! Receives content over HTTP, without MCP, and streams it into the store.

mod access;
mod announced;
mod dialect;
mod feed;
mod parameters;
mod put;
mod received;
mod resumable;
mod stored;

pub(super) use self::{
    put::receive,
    resumable::{append, cancel, options, status},
};
