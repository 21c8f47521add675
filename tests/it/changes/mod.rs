//! Change notifications: to subscribers of either era, and when the catalogue changes.

mod catalogue;
pub(crate) mod legacy;
mod modern;
