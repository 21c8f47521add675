//! The process's limit of open files: each connection needs one.

/// Raises the soft limit, which is often 1,024, to the hard limit, and warns if
/// that is below `limits.connections`.
pub(super) fn raise_limit(connections: usize) {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) if files < connections as u64 => tracing::warn!(
            files,
            connections,
            "the limit of open files is below limits.connections: raise it (ulimit -Hn, LimitNOFILE), or lower limits.connections"
        ),
        Ok(_) => {}
        Err(error) => tracing::debug!(%error, "the limit of open files cannot be raised"),
    }
}
