//! `larder new`: writes the project of a server.

mod source;

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Args, ValueEnum};

use self::source::Source;
use super::{USAGE, client::say, fail};

/// The files of each project. In all files, `{{name}}` is the project's name, `{{crate}}` that of its
/// crate, `{{larder}}` the dependency on this crate, and `{{checkout}}` what an image needs of a
/// checkout.
const FILES: [(&str, &str); 4] = [
    ("Cargo.toml", include_str!("Cargo.toml.in")),
    ("Dockerfile", include_str!("Dockerfile.in")),
    (".dockerignore", "target\n"),
    (".gitignore", "/target\n"),
];

const TOOLS: [(&str, &str); 1] = [("src/main.rs", include_str!("tools/main.rs.in"))];
const WORKFLOW: [(&str, &str); 1] = [("src/main.rs", include_str!("workflow/main.rs.in"))];
const GATEWAY: [(&str, &str); 4] = [
    ("src/lib.rs", include_str!("gateway/lib.rs.in")),
    ("src/main.rs", include_str!("gateway/main.rs.in")),
    ("src/bin/hello.rs", include_str!("gateway/hello.rs.in")),
    ("tests/gateway.rs", include_str!("gateway/test.rs.in")),
];

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The project's name, and its directory.
    name: String,
    /// The kind of project.
    #[arg(long, value_enum, default_value_t = Template::Tools)]
    template: Template,
    /// A checkout of Larder to build on, instead of the source of this binary.
    #[arg(long, value_name = "CHECKOUT")]
    path: Option<PathBuf>,
}

/// The kinds of projects.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Template {
    /// A server with tools, one of which stores what it finds.
    Tools,
    /// A server with a prompt that runs its steps on the server.
    Workflow,
    /// A server in front of another MCP server.
    Gateway,
}

impl Template {
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Tools => &TOOLS,
            Self::Workflow => &WORKFLOW,
            Self::Gateway => &GATEWAY,
        }
    }
}

pub(super) fn run(args: &NewArgs) -> ExitCode {
    let NewArgs { name, template, path } = args;
    if !is_name(name) {
        let problem = format!(
            "{name:?} cannot be a package: begin with a letter, then letters, digits, - and _"
        );
        return fail(USAGE, &problem);
    }
    if matches!(template, Template::Gateway) && name == "hello" {
        return fail(USAGE, &"hello is the name of the server behind a gateway: take another one");
    }

    let source = match path {
        Some(checkout) => Source::checkout(checkout),
        None => Source::of_this_binary(),
    };
    let source = match source {
        Ok(source) => source,
        Err(problem) => return fail(USAGE, &problem),
    };

    match write(name, *template, &source) {
        Ok(()) => {
            say(&format!("Created {name}. Next: cd {name} && cargo test && cargo run"));
            ExitCode::SUCCESS
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fail(USAGE, &format!("{name} exists already"))
        }
        Err(error) => fail(1, &format!("{name}: {error}")),
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn write(name: &str, template: Template, source: &Source) -> io::Result<()> {
    // Creation fails if the directory exists.
    fs::create_dir(name)?;

    let root = PathBuf::from(name);
    for (file, text) in FILES.iter().chain(template.files()) {
        let text = text
            .replace("{{name}}", name)
            .replace("{{crate}}", &name.replace('-', "_"))
            .replace("{{larder}}", &source.dependency())
            .replace("{{checkout}}", &source.copied_checkout());

        let file = root.join(file);
        fs::create_dir_all(file.parent().unwrap_or(Path::new(name)))?;
        fs::write(file, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_package() {
        for name in ["demo", "my-server_2"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "2nd", "a b", "../up", "ä", "-x"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
