//! Messages of upstreams while they arrive: of a limited length, and without their long texts,
//! which go to the store.

mod assembly;
mod extractor;
pub(super) mod line;
mod line_ends;
mod refusal;
mod several_lines;
pub(super) mod sse;
mod utf8;

pub(super) use assembly::{Arrived, Assembly, Calls, StoredTexts};
pub(super) use line_ends::{ByteOrderMark, LineEnds};
pub(super) use refusal::MessageRefusal;
pub(super) use several_lines::MessageLines;
