//! Where a server stores resources: a directory, S3, Redis, and Redis with external blobs.

pub(crate) mod directories;
mod external_blobs;
pub(crate) mod objects;
mod redis_access;
mod redis_migrations;
mod shared_redis;
