//! [`Upstreams`]: all upstreams of a server. They can change while it runs.

use std::{
    collections::{BTreeSet, HashSet},
    path::PathBuf,
    sync::Arc,
};

use larder_runtime::metric;
use larder_server::registry::Provider;
use parking_lot::Mutex;

use super::{
    budget::MessageBudget,
    memory::Folder,
    names::label,
    provider::Upstream,
    settings::Settings,
    status::{State, Status},
};

/// All upstreams of a server.
pub struct Upstreams {
    /// The upstreams that stay, after those of the configuration.
    fixed: Vec<Settings>,
    /// The names of the server's own tools.
    reserved: HashSet<String>,
    /// The memory for their messages.
    budget: Arc<MessageBudget>,
    /// The folder in which their offers are remembered.
    folder: Folder,
    current: Mutex<Vec<Arc<Upstream>>>,
    /// The names that the metrics have.
    measured: Mutex<BTreeSet<String>>,
}

impl Upstreams {
    /// The upstreams of a configuration and others that stay. `reserved` are the names of the
    /// tools of this server itself.
    ///
    /// # Errors
    /// When two of them have the same name.
    pub fn new<'a>(
        configured: Vec<Settings>,
        fixed: Vec<Settings>,
        reserved: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, String> {
        let reserved = reserved.into_iter().map(str::to_owned).collect();
        let upstreams = Self {
            fixed,
            reserved,
            budget: Arc::default(),
            folder: Folder::default(),
            current: Mutex::default(),
            measured: Mutex::default(),
        };
        upstreams.check(&configured)?;
        upstreams.replace(configured);
        Ok(upstreams)
    }

    /// Checks upstreams before [`Upstreams::replace`].
    ///
    /// # Errors
    /// When two have the same name.
    pub fn check(&self, configured: &[Settings]) -> Result<(), String> {
        let mut names = HashSet::new();
        for Settings { name, .. } in configured.iter().chain(&self.fixed) {
            if !names.insert(name) {
                return Err(format!("two upstreams are called {name}"));
            }
        }
        Ok(())
    }

    /// Whether those of the configuration have other settings.
    pub fn differ_from(&self, configured: &[Settings]) -> bool {
        let current = self.current.lock();
        let next = configured.iter().chain(&self.fixed);
        !current.iter().map(|upstream| upstream.settings()).eq(next)
    }

    /// Replaces those of the configuration. One whose settings stay goes on, unless the names
    /// of its tools get a prefix or lose it, because there are several upstreams or one.
    pub fn replace(&self, configured: Vec<Settings>) {
        let all: Vec<_> = configured.into_iter().chain(self.fixed.iter().cloned()).collect();
        let is_prefixed = all.len() > 1;

        let mut current = self.current.lock();
        let next = all.into_iter().map(|settings| {
            let known = current.iter().find(|known| known.is_of(&settings, is_prefixed));
            known.cloned().unwrap_or_else(|| {
                let reserved = self.reserved.clone();
                let budget = Arc::clone(&self.budget);
                let folder = Arc::clone(&self.folder);
                Arc::new(Upstream::new(settings, is_prefixed, reserved, budget, folder))
            })
        });
        let next = next.collect();
        *current = next;
    }

    /// Limits the messages of all upstreams together that are received or in use, in bytes.
    pub fn limit_messages(&self, bytes: usize) {
        self.budget.set_max(bytes);
    }

    /// The bytes of messages of all upstreams that are received or in use, and of their lists.
    pub fn message_bytes(&self) -> usize {
        self.budget.used()
    }

    /// Remembers in files of this folder what the upstreams offer, from their next start on. Set
    /// once, before the first use.
    pub fn remember_in(&self, folder: PathBuf) {
        let _ = self.folder.set(folder);
    }

    /// Recalls what the upstreams have offered last, so that names can be checked before they are
    /// used. Blocks while it reads their files.
    pub fn recall(&self) {
        self.upstreams().iter().for_each(|upstream| upstream.recall());
    }

    /// The upstreams as providers of a registry.
    pub fn providers(&self) -> Vec<Arc<dyn Provider>> {
        self.upstreams().into_iter().map(|upstream| upstream as Arc<dyn Provider>).collect()
    }

    /// The state of each upstream, for operators.
    pub fn statuses(&self) -> Vec<Status> {
        self.upstreams().iter().map(|upstream| upstream.status()).collect()
    }

    fn upstreams(&self) -> Vec<Arc<Upstream>> {
        self.current.lock().clone()
    }

    /// Sets the metrics of each upstream. Gauges of those that were removed become NaN.
    #[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
    pub fn measure(&self) {
        let statuses = self.statuses();
        let mut measured = self.measured.lock();
        let names = statuses.iter().map(|status| status.name.clone()).collect();
        let before = std::mem::replace(&mut *measured, names);

        for name in before.difference(&measured) {
            set_gauges(name, [f64::NAN; 3]);
        }

        metric::gauge("larder_upstream_message_bytes", []).set(self.message_bytes() as f64);
        for Status { name, state, is_failing, processes, kept_out_bytes, failures, .. } in statuses
        {
            let is_up = f64::from(u8::from(!is_failing));
            let is_degraded = f64::from(u8::from(state == State::Degraded));
            set_gauges(&name, [is_up, is_degraded, processes as f64]);
            metric::counter("larder_upstream_failures_total", [("upstream", label(&name))])
                .absolute(failures);
            metric::counter("larder_upstream_kept_out_bytes_total", [("upstream", label(&name))])
                .absolute(kept_out_bytes);
        }
    }
}

/// The gauges of each upstream.
const GAUGES: [&str; 3] =
    ["larder_upstream_up", "larder_upstream_degraded", "larder_upstream_processes"];

fn set_gauges(name: &str, values: [f64; 3]) {
    for (gauge, value) in GAUGES.into_iter().zip(values) {
        metric::gauge(gauge, [("upstream", label(name))]).set(value);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn named(name: &str) -> Settings {
        Settings::new(name, vec!["false".to_owned()])
    }

    #[test]
    fn an_upstream_whose_settings_stay_goes_on() {
        let upstreams = Upstreams::new(vec![named("a"), named("b")], vec![named("c")], []).unwrap();
        let first = upstreams.upstreams();

        assert!(upstreams.check(&[named("c")]).unwrap_err().contains("called c"));

        let mut changed = named("b");
        changed.max_processes = 1;
        upstreams.replace(vec![changed, named("a"), named("d")]);

        let second = upstreams.upstreams();
        let names: Vec<_> = upstreams.statuses().into_iter().map(|status| status.name).collect();
        assert_eq!(names, ["b", "a", "d", "c"]);
        assert!(Arc::ptr_eq(&first[0], &second[1]) && Arc::ptr_eq(&first[2], &second[3]));
        assert!(!Arc::ptr_eq(&first[1], &second[0]));

        // A single upstream that is left has no prefix.
        upstreams.replace(Vec::new());
        assert!(!Arc::ptr_eq(&upstreams.upstreams()[0], &second[3]));
    }
}
