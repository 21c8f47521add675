//! A change of a resource.

use std::sync::Arc;

use super::ResourceUri;
use crate::auth::Owner;

/// One change to one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The resource's owner.
    pub owner: Owner,
    /// The resource's URI.
    pub uri: ResourceUri,
    /// What happened.
    pub kind: ChangeKind,
    /// The ID of the change, equal in all processes that receive it; `None` where
    /// only this process receives it.
    pub id: Option<Arc<str>>,
}

/// What happened to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The resource is new.
    Created,
    /// The resource has new content.
    Updated,
    /// The resource was deleted.
    Deleted,
    /// The resource expired.
    Expired,
}
