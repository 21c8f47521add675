//! A change of a resource.

use std::sync::Arc;

use larder_identity::Owner;

use super::ResourceUri;

/// A change of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The resource's owner.
    pub owner: Owner,
    /// The resource's URI.
    pub uri: ResourceUri,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The ID of the change, equal in all processes that receive it; `None` where
    /// only this process receives it.
    pub id: Option<Arc<str>>,
}

/// The kind of a change of a resource.
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
