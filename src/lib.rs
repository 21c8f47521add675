//! Larder.
pub mod auth;
pub mod clock;
pub mod protocol;
pub mod random;
pub mod store;
