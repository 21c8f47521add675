//! The migrations of the data in Redis. See README.md in this folder.

/// The number, name and Lua code of each migration; the numbers are consecutive from 1.
pub const MIGRATIONS: &[(u32, &str, &str)] = &[
    (1, "resources", include_str!("0001_resources.lua")),
    (2, "compressed_blocks", include_str!("0002_compressed_blocks.lua")),
    (3, "usage", include_str!("0003_usage.lua")),
    (4, "parts", include_str!("0004_parts.lua")),
];
