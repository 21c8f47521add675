//! The file of a program. On Windows, `npx` is `npx.cmd`, which no search for `npx.exe` finds.

use std::{borrow::Cow, collections::BTreeMap, path::Path};

/// The suffixes of programs that Windows starts. Other scripts need a program of their own.
#[cfg(any(windows, test))]
const EXECUTABLE: [&str; 4] = [".com", ".exe", ".bat", ".cmd"];

/// The file to start, with these variables of its own. The system looks for it if nothing is found
/// here.
#[cfg(windows)]
pub(super) fn resolve<'a>(name: &'a str, env: &BTreeMap<String, String>) -> Cow<'a, Path> {
    let variable = |wanted: &str| {
        let own = env.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        own.map(|(_, value)| value.into())
            .or_else(|| larder_runtime::environment::variable_os(wanted))
    };

    let folders = variable("PATH").unwrap_or_default();
    let extensions = variable("PATHEXT").and_then(|value| value.into_string().ok());
    let extensions = extensions.unwrap_or_else(|| EXECUTABLE.join(";"));
    let found = find(name, std::env::split_paths(&folders), &extensions, Path::is_file);
    found.map_or(Cow::Borrowed(Path::new(name)), Cow::Owned)
}

/// Looks for a program as the system does, with these variables of its own: where a supervisor
/// starts it, the system says too late that there is none.
#[cfg(target_os = "linux")]
pub(super) fn check(name: &str, env: &BTreeMap<String, String>) -> std::io::Result<()> {
    const ENOENT: i32 = 2;

    if name.contains('/') {
        return std::fs::metadata(name).map(drop);
    }

    let folders = env.get("PATH").map(std::ffi::OsString::from);
    let Some(folders) = folders.or_else(|| larder_runtime::environment::variable_os("PATH")) else {
        return Ok(());
    };
    let is_found = std::env::split_paths(&folders).any(|folder| folder.join(name).is_file());
    is_found.then_some(()).ok_or_else(|| std::io::Error::from_raw_os_error(ENOENT))
}

/// The name: the system looks for it.
#[cfg(not(windows))]
pub(super) fn resolve<'a>(name: &'a str, _env: &BTreeMap<String, String>) -> Cow<'a, Path> {
    Cow::Borrowed(Path::new(name))
}

/// The first file of that name, with one of the extensions (`PATHEXT`), in these folders; a name
/// that has a folder is not looked for in others. A file without extension is a script for shells
/// of Unix: npm installs one beside each `.cmd`.
#[cfg(any(windows, test))]
fn find(
    name: &str,
    folders: impl Iterator<Item = std::path::PathBuf>,
    extensions: &str,
    is_file: impl Fn(&Path) -> bool,
) -> Option<std::path::PathBuf> {
    let is_executable = |extension: &&str| {
        EXECUTABLE.iter().any(|executable| executable.eq_ignore_ascii_case(extension))
    };
    let extensions: Vec<_> = extensions.split(';').map(str::trim).filter(is_executable).collect();
    let has_extension =
        Path::new(name).extension().and_then(|own| own.to_str()).is_some_and(|own| {
            EXECUTABLE.iter().any(|executable| executable[1..].eq_ignore_ascii_case(own))
        });
    let names: Vec<_> = if has_extension {
        vec![name.to_owned()]
    } else {
        extensions.iter().map(|extension| format!("{name}{extension}")).collect()
    };

    let has_folder = name.contains(['/', '\\', ':']);
    let here = has_folder.then(std::path::PathBuf::new);
    let elsewhere = (!has_folder).then_some(folders).into_iter().flatten();
    // A relative folder in PATH would depend on where the server was started.
    let elsewhere = elsewhere.filter(|folder| folder.has_root());

    let files = here.into_iter().chain(elsewhere);
    files
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>())
        .find(|file| is_file(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program that is found among these files, in two folders.
    fn found(name: &str, extensions: &str, files: &[&str]) -> Option<String> {
        let folders = ["relative", "/node", "/tools"].map(std::path::PathBuf::from);
        let is_file = |file: &Path| files.iter().any(|known| Path::new(known) == file);
        let found = find(name, folders.into_iter(), extensions, is_file)?;
        Some(found.to_string_lossy().into_owned())
    }

    #[test]
    fn a_program_is_found_by_the_extensions_of_windows() {
        let usual = ".COM;.EXE;.BAT;.CMD;.VBS;.JS";
        for (name, files, expected) in [
            ("npx", &["/node/npx", "/node/npx.CMD"][..], Some("/node/npx.CMD")),
            ("uvx", &["/tools/uvx.EXE", "/tools/uvx.CMD"], Some("/tools/uvx.EXE")),
            // Folders count first, then extensions.
            ("npx", &["/tools/npx.EXE", "/node/npx.CMD"], Some("/node/npx.CMD")),
            ("npx.cmd", &["/node/npx.cmd"], Some("/node/npx.cmd")),
            ("server-1.2", &["/node/server-1.2.EXE"], Some("/node/server-1.2.EXE")),
            ("/my/tool", &["/my/tool.CMD", "/node/tool.CMD"], Some("/my/tool.CMD")),
            // Not found: files that Windows cannot start, and programs in relative folders of PATH.
            ("npx", &["/node/npx", "/node/npx.JS", "relative/npx.CMD"], None),
            ("npx.cmd", &["/node/npx.cmd.EXE"], None),
        ] {
            assert_eq!(found(name, usual, files).as_deref(), expected, "{name} of {files:?}");
        }

        assert_eq!(found("npx", ".EXE", &["/node/npx.CMD"]), None);
    }

    #[cfg(not(windows))]
    #[test]
    fn elsewhere_the_system_looks_for_it() {
        assert_eq!(&*resolve("npx", &BTreeMap::new()), Path::new("npx"));
    }
}
