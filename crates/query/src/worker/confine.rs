//! The confinement of the worker: limits of the process, and on Linux no files,
//! no network and few system calls, as far as the kernel can do that.

use std::io;

#[cfg(unix)]
use rlimit::{Resource, setrlimit};

use crate::Confinement;

/// How a worker is confined.
pub(super) struct Confined {
    pub(super) barriers: Confinement,
    /// The memory that queries may use, in bytes.
    pub(super) free_bytes: u64,
}

/// Gives up everything that queries do not need. Fails if the limits cannot be set. Barriers that
/// depend on the kernel may be missing; the server decides whether it accepts that.
#[cfg(unix)]
pub(super) fn enter(memory_bytes: u64, stack_bytes: u64) -> io::Result<Confined> {
    let used = UsedMemory::read();
    setrlimit(Resource::FSIZE, 0, 0)?;
    setrlimit(Resource::CORE, 0, 0)?;

    #[cfg(target_os = "linux")]
    let barriers = linux::confine();
    #[cfg(not(target_os = "linux"))]
    let barriers = Confinement { landlock: false, seccomp: false };

    // Standard input, output and error are open; nothing else can be.
    setrlimit(Resource::NOFILE, 3, 3)?;

    // The kernel limits the address space, of which a part is never in memory.
    let new_mappings = memory_bytes.saturating_sub(used.program() + used.mapped_data);
    let limit = used.address_space.saturating_add(new_mappings);
    setrlimit(Resource::AS, limit, limit)?;
    let free_bytes = memory_bytes.saturating_sub(used.program() + used.data + stack_bytes);
    Ok(Confined { barriers, free_bytes })
}

/// Fails: queries without a limit of their memory could take all of the machine.
#[cfg(not(unix))]
pub(super) fn enter(_memory_bytes: u64, _stack_bytes: u64) -> io::Result<Confined> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "queries need limits that only Unix has"))
}

/// The memory that the process has taken by now, in bytes.
#[cfg(unix)]
struct UsedMemory {
    /// All mappings.
    address_space: u64,
    /// The mappings of data, with stacks and what the allocator has reserved, whether or not they
    /// are in memory yet.
    mapped_data: u64,
    /// The data that is in memory.
    data: u64,
    /// The pages of the program that are in memory.
    program: u64,
}

#[cfg(unix)]
impl UsedMemory {
    const PAGE_BYTES: u64 = 4 << 10;
    /// The pages of the program that queries need besides those that its start needs.
    const LATER_PROGRAM_BYTES: u64 = 16 << 20;

    /// Reads `/proc`; an estimate where it is missing.
    fn read() -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = statm.split_whitespace().map(|pages| pages.parse::<u64>().unwrap_or(0));
        let bytes: Vec<u64> = pages.map(|pages| pages * Self::PAGE_BYTES).collect();

        match bytes[..] {
            [address_space, resident, program, _, _, mapped_data, ..] => {
                Self { address_space, mapped_data, data: resident - program, program }
            }
            _ => Self { address_space: 1 << 30, mapped_data: 0, data: 0, program: 0 },
        }
    }

    /// The most that the program itself takes.
    fn program(&self) -> u64 {
        self.program + Self::LATER_PROGRAM_BYTES
    }
}

/// Ends the process when it has used this much CPU time, whatever it does.
#[cfg(unix)]
pub(super) fn limit_cpu(seconds: u64) {
    let hard = rlimit::INFINITY;
    // Setting the limit fails only under a lower limit from outside, which serves as well.
    let _ = setrlimit(Resource::CPU, seconds, hard);
}

#[cfg(not(unix))]
pub(super) fn limit_cpu(_seconds: u64) {}

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

    use crate::Confinement;

    /// Raises the barriers that the kernel has.
    pub(super) fn confine() -> Confinement {
        // An old kernel knows no rules for TCP, whose system calls seccomp forbids.
        let landlock = landlock().is_ok_and(|status| status != RulesetStatus::NotEnforced);
        let seccomp = seccomp().is_ok();
        Confinement { landlock, seccomp }
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
    const ALLOWED: [i64; 27] = [
        libc::SYS_close,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
        libc::SYS_futex,
        libc::SYS_ppoll,
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

        // A mapping without a file has the descriptor -1.
        rules.insert(libc::SYS_mmap, condition(4, SeccompCmpOp::Eq, u64::from(u32::MAX))?);

        let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
        let arch = std::env::consts::ARCH.try_into()?;
        let filter = SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?;
        let program: BpfProgram = filter.try_into()?;
        seccompiler::apply_filter_all_threads(&program)?;
        Ok(())
    }
}
