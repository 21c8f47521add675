//! Tools: arguments, results, and arguments that are mirrored into headers.

mod arguments;
mod header_parameters;
mod hosts;
mod listed_bytes;
pub(crate) mod query;
mod query_callers;
mod query_coercion;
mod query_docs;
mod query_filters;
mod query_formats;
pub(crate) mod query_limits;
mod query_odd;
mod query_sources;
mod query_turns;
mod quoting;
mod results;
mod stored_json;
mod typing;
