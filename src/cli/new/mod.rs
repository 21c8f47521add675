//! `larder new`: writes the project of a server.

use std::{fs, io, path::PathBuf, process::ExitCode};

use clap::Args;

use super::{USAGE, fail};

/// The files of a project. In each, `{{name}}` is the project's name, `{{larder}}` the
/// dependency on this crate, and `{{checkout}}` what an image needs of a checkout.
const FILES: [(&str, &str); 5] = [
    ("Cargo.toml", include_str!("Cargo.toml.in")),
    ("src/main.rs", include_str!("main.rs.in")),
    ("Dockerfile", include_str!("Dockerfile.in")),
    (".dockerignore", "target\n"),
    (".gitignore", "/target\n"),
];

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The project's name, and its directory.
    name: String,
    /// A checkout of Larder to build on, instead of the published crate.
    #[arg(long, value_name = "CHECKOUT")]
    path: Option<PathBuf>,
}

pub(super) fn run(args: &NewArgs) -> ExitCode {
    let NewArgs { name, path } = args;
    if !is_name(name) {
        let problem = format!(
            "{name:?} cannot be a package: begin with a letter, then letters, digits, - and _"
        );
        return fail(USAGE, &problem);
    }

    let (larder, checkout) = match path {
        None => (format!("{:?}", env!("CARGO_PKG_VERSION")), String::new()),
        Some(checkout) => match fs::canonicalize(checkout) {
            Ok(checkout) if checkout.join("Cargo.toml").is_file() => {
                let checkout = checkout.display().to_string();
                (format!("{{ path = {checkout:?} }}"), copy_checkout(&checkout))
            }
            _ => return fail(USAGE, &format!("--path {}: no Cargo.toml", checkout.display())),
        },
    };

    match write(name, &larder, &checkout) {
        Ok(()) => {
            println!("Created {name}. Next: cd {name} && cargo test && cargo run");
            ExitCode::SUCCESS
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fail(USAGE, &format!("{name} exists already"))
        }
        Err(error) => fail(1, &format!("{name}: {error}")),
    }
}

/// The lines of the Dockerfile that bring a checkout into the image: it is outside of the
/// project, which is the context of the build.
fn copy_checkout(path: &str) -> String {
    format!(
        "# The checkout that Cargo.toml names: docker build --build-context larder={path} .\n\
         COPY --from=larder [\".\", {path:?}]\n"
    )
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn write(name: &str, larder: &str, checkout: &str) -> io::Result<()> {
    // Creation fails if the directory exists.
    fs::create_dir(name)?;

    let root = PathBuf::from(name);
    fs::create_dir(root.join("src"))?;
    for (file, template) in FILES {
        let text = template.replace("{{name}}", name).replace("{{larder}}", larder);
        let text = text.replace("{{checkout}}", checkout);
        fs::write(root.join(file), text)?;
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
