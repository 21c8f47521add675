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
mod uploader;

pub(super) use self::{
    access::receives,
    put::receive,
    resumable::{append, cancel, options, status},
    uploader::{UploadLink, Uploader},
};
