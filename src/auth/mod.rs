//! Who calls, and what they may do.

mod identity;
mod principal;
mod scopes;

pub use identity::Identity;
pub use principal::{Owner, Principal};
pub use scopes::{Grant, Hierarchy, ScopeError, Scopes};
