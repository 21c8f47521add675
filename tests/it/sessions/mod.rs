//! Sessions of the legacy era: their lifecycle, their calls and their streams.

mod calls;
mod lifecycle;
mod streams;
