//! The caller, and what it may do: the [`Identity`] of a request, its [`Principal`], the
//! [`Owner`] to which everything dynamic belongs, and the [`Scopes`] that were granted.

mod identity;
mod principal;
mod scopes;
mod secret;
mod validity;

pub use identity::Identity;
pub use principal::{Owner, Principal};
pub use scopes::{Grant, Hierarchy, ScopeError, Scopes};
pub use secret::Secret;
pub use validity::Validity;
