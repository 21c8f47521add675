//! Why a server cannot run.

use std::io;

use larder_server::registry::BuildError;

use crate::app::OpenError;

/// The reason why a server cannot run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The server's state cannot be made: see [`Server::lifespan`](super::Server::lifespan).
    #[error("{0}")]
    State(String),
    /// The server's definition has problems.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A setting is invalid, or the store cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The transport failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
