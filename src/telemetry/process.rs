//! Gauges of this process, measured on demand: memory, CPU time, open files, and its version. Names are
//! those of Prometheus' own client libraries. Other systems than Linux have the version alone.

use larder_runtime::metric::{self, Label};

/// The kernel's unit of CPU time, in ticks a second: `USER_HZ` is 100 on all architectures of Linux.
#[cfg(target_os = "linux")]
const TICKS: f64 = 100.0;

/// Measures the process.
pub fn measure() {
    let version = Label::fixed(env!("CARGO_PKG_VERSION"));
    metric::gauge("larder_build_info", [("version", version)]).set(1.0);

    #[cfg(target_os = "linux")]
    measure_linux();
}

#[cfg(target_os = "linux")]
fn measure_linux() {
    let Some(facts) = read() else { return };
    metrics::gauge!("process_resident_memory_bytes").set(facts.resident_bytes);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a time")]
    let cpu_seconds = facts.cpu_seconds as u64;
    metrics::counter!("process_cpu_seconds_total").absolute(cpu_seconds);
    metrics::gauge!("process_start_time_seconds").set(facts.started);
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        // One of them is the directory itself.
        let open = u32::try_from(open.count().saturating_sub(1)).unwrap_or(u32::MAX);
        metrics::gauge!("process_open_fds").set(f64::from(open));
    }
}

/// Facts of `/proc` (proc_pid_stat(5), proc_pid_status(5), proc_stat(5)).
#[cfg(target_os = "linux")]
#[derive(Debug, Clone, Copy, PartialEq)]
struct ProcessFacts {
    resident_bytes: f64,
    cpu_seconds: f64,
    started: f64,
}

#[cfg(target_os = "linux")]
fn read() -> Option<ProcessFacts> {
    let text = |path| std::fs::read_to_string(path).ok();
    parse(&text("/proc/self/stat")?, &text("/proc/self/status")?, &text("/proc/stat")?)
}

#[cfg(target_os = "linux")]
fn parse(stat: &str, status: &str, system: &str) -> Option<ProcessFacts> {
    // The name of the command is in parentheses and may have any characters.
    let (_, fields) = stat.rsplit_once(')')?;
    let field = |number: usize| -> Option<f64> {
        // The first one behind the name is the third.
        fields.split_whitespace().nth(number - 3)?.parse().ok()
    };
    let line = |text: &str, name: &str| -> Option<f64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };

    Some(ProcessFacts {
        resident_bytes: line(status, "VmRSS:")? * 1024.0,
        cpu_seconds: (field(14)? + field(15)?) / TICKS,
        started: line(system, "btime ")? + field(22)? / TICKS,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_whatever_the_command_is_called() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 9 0 1000 1 2 3";
        let status = "Name:\ta\nVmRSS:\t    2048 kB\n";
        let system = "cpu 1\nbtime 1700000000\n";
        let facts = ProcessFacts {
            resident_bytes: 2_097_152.0,
            cpu_seconds: 2.0,
            started: 1_700_000_010.0,
        };
        assert_eq!(parse(stat, status, system), Some(facts));
        assert_eq!(parse("", status, system), None);
        assert_eq!(parse(stat, "", system), None);
    }

    #[test]
    fn the_facts_of_this_process_are_plausible() {
        let facts = read().expect("Linux has them");
        assert!(facts.resident_bytes > 1e5 && facts.started > 1.6e9, "{facts:?}");
    }
}
