//! The name under which a client saves content.

use larder_protocol::quote::is_deceptive;

/// The most bytes of a name, so that file systems accept it.
const MAX_BYTES: usize = 200;
/// The most bytes of an extension, which a shortened name keeps.
const MAX_EXTENSION: usize = 16;
/// The name of content without one.
const DEFAULT: &str = "download";

/// The name as a file name: without control characters, separators and bidirectional overrides,
/// and not hidden.
pub fn file_name(name: &str) -> String {
    let replaced: String = name
        .chars()
        .map(|c| if is_deceptive(c) || matches!(c, '/' | '\\') { '_' } else { c })
        .collect();

    let trimmed = replaced.trim().trim_start_matches('.').trim_end_matches(['.', ' ']);
    if trimmed.is_empty() { DEFAULT.to_owned() } else { shortened(trimmed) }
}

fn shortened(name: &str) -> String {
    if name.len() <= MAX_BYTES {
        return name.to_owned();
    }

    let extension = name.rfind('.').map(|dot| &name[dot..]);
    let extension = extension.filter(|extension| extension.len() <= MAX_EXTENSION);
    let extension = extension.unwrap_or_default();

    let end = name.floor_char_boundary(MAX_BYTES - extension.len());
    format!("{}{extension}", &name[..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_becomes_a_file_name() {
        for (name, expected) in [
            ("report.csv", "report.csv"),
            ("a \"b\" c", "a \"b\" c"),
            ("a\r\nset-cookie: x", "a__set-cookie: x"),
            ("../../etc/passwd", "_.._etc_passwd"),
            ("C:\\temp\\x", "C:_temp_x"),
            (".bashrc", "bashrc"),
            ("Größe 漢字", "Größe 漢字"),
            ("fdp\u{202e}cod.exe", "fdp_cod.exe"),
            (" ... ", DEFAULT),
            ("", DEFAULT),
        ] {
            assert_eq!(file_name(name), expected);
        }

        let long = file_name(&format!("{}.csv", "ä".repeat(300)));
        assert!(long.len() <= MAX_BYTES && long.ends_with("ä.csv"), "{long}");
    }

    proptest! {
        #[test]
        fn any_name_is_harmless(name: String) {
            let name = file_name(&name);
            prop_assert!(!name.is_empty() && name.len() <= MAX_BYTES && !name.starts_with('.'));
            prop_assert!(!name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\')));
        }
    }
}
