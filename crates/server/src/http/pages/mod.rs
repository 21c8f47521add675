//! Pages for browsers: their frame, and what browsers send with forms.

pub(super) mod browser;
pub(super) mod page;
