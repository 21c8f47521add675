//! Content of any size, and the memory that a process uses for it.

use std::{
    io::{self, Write},
    path::Path,
};

use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use sha2::{Digest, Sha256};

use crate::support::{noise, process::Process};

/// Content of a number of equal blocks, each of which compression does not make smaller.
pub(super) struct Generated {
    block: Bytes,
    blocks: u64,
}

impl Generated {
    pub(super) fn of(bytes: u64) -> Self {
        let block: Vec<u8> = noise(3).take(131_072).flat_map(u64::to_le_bytes).collect();
        Self { blocks: bytes / block.len() as u64, block: block.into() }
    }

    pub(super) fn len(&self) -> u64 {
        self.blocks * self.block.len() as u64
    }

    pub(super) fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        (0..self.blocks).for_each(|_| hash.update(&self.block));
        super::hex_of(&hash.finalize())
    }

    /// Writes the content to a file.
    pub(super) fn write_to(&self, path: &Path) {
        let mut file = std::fs::File::create(path).unwrap();
        (0..self.blocks).for_each(|_| file.write_all(&self.block).unwrap());
    }

    pub(super) fn body(&self) -> Body {
        let block = self.block.clone();
        Body::wrap_stream(stream::iter(
            (0..self.blocks).map(move |_| io::Result::Ok(block.clone())),
        ))
    }
}

/// The resident memory of a process in bytes: `VmRSS:` is the present amount, `VmHWM:` the peak.
pub(super) fn memory(process: &Process, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Sets the peak of the resident memory to the present amount.
pub(super) fn reset_peak(process: &Process) {
    std::fs::write(format!("/proc/{}/clear_refs", process.id()), "5").unwrap();
}

/// A body that sends nothing and does not end.
pub(super) fn never() -> Body {
    Body::wrap_stream(stream::pending::<io::Result<Bytes>>())
}
