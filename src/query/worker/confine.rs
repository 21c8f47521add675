//! The confinement of the worker: limits of the process, and on Linux no files,
//! no network and few system calls, as far as the kernel can do that.

use std::io;

#[cfg(unix)]
use rlimit::{Resource, setrlimit};

/// Gives up everything that queries do not need. Fails if the limits cannot be
/// set; the rest is a second line of defence, and depends on the kernel.
#[cfg(unix)]
pub(super) fn enter(memory_bytes: u64) -> io::Result<()> {
    let used = used_address_space();
    setrlimit(Resource::FSIZE, 0, 0)?;
    setrlimit(Resource::CORE, 0, 0)?;
    #[cfg(target_os = "linux")]
    linux::confine();
    // Standard input, output and error are open; nothing else can be.
    setrlimit(Resource::NOFILE, 3, 3)?;
    // Virtual memory, which is what the kernel counts.
    let limit = used.saturating_add(memory_bytes);
    setrlimit(Resource::AS, limit, limit)?;
    Ok(())
}

/// Fails: queries without a limit of their memory could take all of the machine.
#[cfg(not(unix))]
pub(super) fn enter(_memory_bytes: u64) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "queries need limits that only Unix has"))
}

/// Ends the process when it has used this much CPU time: it ends even if nobody
/// is left to stop it.
#[cfg(unix)]
pub(super) fn limit_cpu(seconds: u64) {
    let hard = rlimit::INFINITY;
    // Fails only where a lower limit is set from outside, which is fine.
    let _ = setrlimit(Resource::CPU, seconds, hard);
}

#[cfg(not(unix))]
pub(super) fn limit_cpu(_seconds: u64) {}

/// The address space that the program itself takes.
#[cfg(unix)]
fn used_address_space() -> u64 {
    const PAGE_BYTES: u64 = 4 << 10;
    const UNKNOWN: u64 = 1 << 30;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok());
    pages.map_or(UNKNOWN, |pages| pages * PAGE_BYTES)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    pub(super) fn confine() {
        // Kernels without it refuse; the other measures hold all the same.
        let _ = landlock();
        let _ = seccomp();
    }

    /// No access to any file, and no TCP.
    fn landlock() -> Result<RulesetStatus, RulesetError> {
        let abi = ABI::V4;
        let ruleset = Ruleset::default()
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .create()?;
        Ok(ruleset.restrict_self()?.ruleset)
    }

    /// System calls with a file: allowed for standard input, output and error only.
    /// The process that started the server may have left other files open.
    const WITH_FILE: [i64; 7] = [
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_fstat,
        libc::SYS_fcntl,
        libc::SYS_lseek,
    ];

    /// Other system calls of a program that computes.
    const ALLOWED: [i64; 26] = [
        libc::SYS_close,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_tgkill,
        libc::SYS_gettid,
        libc::SYS_getpid,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_clock_gettime,
        libc::SYS_clock_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_prlimit64,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_rseq,
        libc::SYS_membarrier,
    ];

    /// All other system calls fail with "not permitted".
    fn seccomp() -> Result<(), Box<dyn std::error::Error>> {
        let condition = |argument, comparison, value| {
            let length = SeccompCmpArgLen::Dword;
            let condition = SeccompCondition::new(argument, length, comparison, value)?;
            Ok::<_, seccompiler::BackendError>(vec![SeccompRule::new(vec![condition])?])
        };
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
        for call in WITH_FILE {
            rules.insert(call, condition(0, SeccompCmpOp::Le, 2)?);
        }
        // Memory without a file: its descriptor is -1.
        rules.insert(libc::SYS_mmap, condition(4, SeccompCmpOp::Eq, u64::from(u32::MAX))?);
        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into()?;
        let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter_all_threads(&program)?;
        Ok(())
    }
}
