//! Change notifications to subscribers of both eras, and changes of the catalogue at run time.

mod catalogue;
pub(crate) mod legacy;
mod modern;
