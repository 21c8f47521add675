//! Resources that one caller shares with others.

mod changes;
pub(crate) mod links;
