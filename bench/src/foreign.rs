//! Load of other processes, which invalidates a measurement.

use std::{fs, time::Duration};

/// The most load of other processes that is tolerated, as a share of one core.
pub const TOLERATED: f64 = 0.10;

/// The busy time of all cores and of our processes, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    all: u64,
    ours: u64,
    uptime: f64,
}

impl Sample {
    /// A sample now; `ours` are processes that count as ours, with this one.
    pub fn take(ours: &[u32]) -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let busy = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let busy: Vec<u64> = busy.filter_map(|ticks| ticks.parse().ok()).collect();
        // The fields are user nice system idle iowait irq softirq steal. Idle and iowait are not
        // busy, and interrupts are mostly our own packets.
        let all = [0, 1, 2, 7].iter().filter_map(|index| busy.get(*index)).sum();
        let ours = ours.iter().copied().chain([std::process::id()]).map(process_ticks).sum();
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let uptime = uptime.split(' ').next().and_then(|s| s.parse().ok()).unwrap_or(0.0);
        Self { all, ours, uptime }
    }

    /// The load of other processes since an earlier sample, as a share of one core.
    #[allow(clippy::cast_precision_loss, reason = "few ticks")]
    pub fn foreign_since(self, before: Self) -> f64 {
        let ticks_per_second = 100.0;
        let others = (self.all - before.all).saturating_sub(self.ours - before.ours);
        others as f64 / ticks_per_second / (self.uptime - before.uptime).max(0.01)
    }
}

/// The CPU time of a process so far, in ticks of 10 ms.
pub fn process_ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name, in parentheses, may have spaces; the fields after it have none.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// The CPU time of a process so far, of the threads that it has.
pub fn process_time(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let time = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    threads.filter_map(time).sum()
}
