//! Contract suites for the traits of stores, sessions and tasks, a simulation of many owners, and
//! servers for tests.
//!
//! Requires the feature `testing`. An implementation in another crate runs the
//! suite of its trait with [`store_contract!`](crate::store_contract),
//! [`session_contract!`](crate::session_contract),
//! [`task_contract!`](crate::task_contract) or [`vault_contract!`](crate::vault_contract).

mod redis_server;
mod s3_server;
pub mod session;
pub mod simulation;
mod small_disk;
pub mod store;
pub mod task;
pub mod vault;

#[cfg(test)]
mod redis_installations;

#[cfg(test)]
pub(crate) use redis_installations::Installations;
pub use redis_server::{RedisServer, free_port};
pub use s3_server::S3Server;
pub use small_disk::SmallDisk;
