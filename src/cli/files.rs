//! Open files: each connection is one.

/// Lets the process have as many as it is allowed to: what it begins with is
/// often 1,024, for the sake of programs that could not deal with more.
pub(super) fn enough_for(connections: usize) {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) if files < connections as u64 => tracing::warn!(
            files,
            connections,
            "this process may open fewer files than limits.connections lets it have connections: raise its limit (ulimit -Hn, LimitNOFILE), or lower limits.connections"
        ),
        Ok(_) => {}
        Err(error) => tracing::debug!(%error, "the limit of open files stays as it is"),
    }
}
