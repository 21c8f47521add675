//! Contents, configuration files and digests that tests in several places use.

use std::{fmt::Write, fs, path::Path};

use sha2::{Digest, Sha256};

/// A temporary file, such as a configuration; deleted when it is dropped.
pub(crate) struct TextFile(tempfile::NamedTempFile);

impl TextFile {
    pub(crate) fn new(text: &str) -> Self {
        let file = Self(tempfile::NamedTempFile::new().unwrap());
        file.write(text);
        file
    }

    /// Replaces its text.
    pub(crate) fn write(&self, text: &str) {
        fs::write(self.0.path(), text).unwrap();
    }

    pub(crate) fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }
}

/// The settings of two callers with the tokens `NAME-secret`. Only the first one has the scope that
/// the items of this pattern need.
pub(crate) fn two_callers([first, second]: [&str; 2], items: &str, scope: &str) -> String {
    let [first_digest, second_digest] =
        [first, second].map(|name| sha256(&format!("{name}-secret")));
    format!(
        r#"
        [auth]
        mode = "static"
        [auth.scopes]
        "{items}" = ["{scope}"]
        [[auth.tokens]]
        name = "{first}"
        sha256 = "{first_digest}"
        scopes = ["{scope}"]
        [[auth.tokens]]
        name = "{second}"
        sha256 = "{second_digest}"
        "#
    )
}

/// The files in a folder and in all folders below it. A folder that is deleted
/// meanwhile has none.
pub(crate) fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let below = entries.flatten().flat_map(|entry| {
        let path = entry.path();
        if path.is_dir() { files_below(&path) } else { vec![path] }
    });
    below.collect()
}

/// Lines of about a hundred bytes, some with characters of several bytes.
pub(crate) fn numbered_lines(lines: usize) -> String {
    let mut text = String::with_capacity(lines * 104);
    for n in 0..lines {
        writeln!(text, "{n:08} événement «{}» {}", n % 97, "x".repeat(n % 120)).unwrap();
    }
    text
}

/// Numbers that do not compress; the same in every run (xorshift64).
pub(crate) fn noise(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed + 1;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

/// The SHA-256 digest in hexadecimal, as the configuration has it for tokens.
pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}
