//! Lua scripts, which Redis runs atomically.

use ::redis::{Cmd, ToRedisArgs, cmd};

/// A script and its SHA-1 digest, which EVALSHA takes.
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

    /// Joins `parts` to one script, after the functions of `time.lua`.
    pub(crate) fn with_time_functions(parts: &[&str]) -> Self {
        Self::new(&[&[include_str!("time.lua")], parts].concat().concat())
    }

    /// A call with `keys`, which are all of one shard.
    pub(crate) fn on<K: ToRedisArgs>(&self, keys: &[K]) -> Call<'_> {
        let mut evalsha = cmd("EVALSHA");
        evalsha.arg(&self.digest).arg(keys.len()).arg(keys);
        Call { script: self, evalsha }
    }
}

/// A script with its keys and arguments.
pub(crate) struct Call<'a> {
    script: &'a Script,
    evalsha: Cmd,
}

impl Call<'_> {
    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.evalsha.arg(arg);
        self
    }

    /// The command for a server that has the script loaded.
    pub(super) fn evalsha(&self) -> &Cmd {
        &self.evalsha
    }

    /// The command that loads the script, in a cluster on all nodes.
    pub(super) fn load(&self) -> Cmd {
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg(&self.script.code);
        load
    }
}
