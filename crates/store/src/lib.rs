//! Everything that Larder keeps: resources that live until they expire, legacy sessions and their
//! streams, calls that outlive their request, and small secrets; in memory, Redis, files and object
//! stores. No MCP server is in here.

mod expiring;
pub mod redis;
pub mod session;
pub mod store;
pub mod task;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod transfer;
pub mod vault;
