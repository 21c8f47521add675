//! The protocol over HTTP: eras, headers, the form of a response, and bad input.

mod bad_input;
mod batches;
mod calls;
mod curl;
mod eras;
mod headers;
mod host_check;
mod json_response;
mod logging;
mod mounting;
mod stateless;
