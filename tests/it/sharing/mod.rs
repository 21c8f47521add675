//! Resources that one caller shares with others.

mod changes;
mod clocks;
pub(crate) mod links;
