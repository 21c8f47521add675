//! Lua scripts, which Redis runs as one step.

use ::redis::{Cmd, ToRedisArgs, cmd};

/// A script and its digest, under which Redis remembers it.
#[derive(Debug)]
pub(crate) struct Script {
    code: String,
    digest: String,
}

impl Script {
    pub(crate) fn new(code: &str) -> Self {
        let digest = ::redis::Script::new(code).get_hash().to_owned();
        Self { code: code.to_owned(), digest }
    }

    /// One of several parts, with the `time` and the `digits` of `time.lua`
    /// before them.
    pub(crate) fn timed(parts: &[&str]) -> Self {
        Self::new(&[&[include_str!("time.lua")], parts].concat().concat())
    }

    /// Runs it on keys, all of one shard.
    pub(crate) fn on<K: ToRedisArgs>(&self, keys: &[K]) -> Call<'_> {
        let mut known = cmd("EVALSHA");
        known.arg(&self.digest).arg(keys.len()).arg(keys);
        Call { script: self, known }
    }
}

/// A script with what it is to work on.
pub(crate) struct Call<'a> {
    script: &'a Script,
    known: Cmd,
}

impl Call<'_> {
    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.known.arg(arg);
        self
    }

    /// To a server that remembers the script.
    pub(super) fn known(&self) -> &Cmd {
        &self.known
    }

    /// Makes servers remember it; in a cluster all of them.
    pub(super) fn load(&self) -> Cmd {
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(&self.script.code);
        load
    }
}
