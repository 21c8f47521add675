//! Load that is none of ours: a measurement beside it is thrown away.

use std::fs;

/// How busy the machine's cores were with others' work at most, of one core.
pub const TOLERATED: f64 = 0.10;

/// All cores' busy time, and ours, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    all: u64,
    ours: u64,
    uptime: f64,
}

impl Sample {
    /// Now, with these processes as ours beside this one.
    pub fn take(ours: &[u32]) -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let busy = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        let busy: Vec<u64> = busy.filter_map(|ticks| ticks.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal: idle and iowait are not busy, and
        // interrupts are mostly our own packets.
        let all = [0, 1, 2, 7].iter().filter_map(|at| busy.get(*at)).sum();
        let ours = ours.iter().copied().chain([std::process::id()]).map(of_process).sum();
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        let uptime = uptime.split(' ').next().and_then(|s| s.parse().ok()).unwrap_or(0.0);
        Self { all, ours, uptime }
    }

    /// The share of one core that was others' since then.
    #[allow(clippy::cast_precision_loss, reason = "few ticks")]
    pub fn foreign_since(self, before: Self) -> f64 {
        let ticks_per_second = 100.0;
        let others = (self.all - before.all).saturating_sub(self.ours - before.ours);
        others as f64 / ticks_per_second / (self.uptime - before.uptime).max(0.01)
    }
}

fn of_process(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may have spaces; what follows its closing bracket has none.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}
