//! [`Source`]: where a project gets this crate from.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The source of this crate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A checkout on this machine.
    Checkout(PathBuf),
    /// A revision of a Git repository.
    Git { url: String, revision: String },
    /// The registry, which has this version.
    Registry(&'static str),
}

/// The place where the binary was built.
struct Built {
    /// The directory of this crate.
    directory: &'static str,
    /// The repository and the revision that the builder names, as releases do.
    git: Option<(&'static str, &'static str)>,
}

const BUILT: Built = Built {
    directory: env!("CARGO_MANIFEST_DIR"),
    git: match (option_env!("LARDER_SOURCE_URL"), option_env!("LARDER_SOURCE_REVISION")) {
        (Some(url), Some(revision)) => Some((url, revision)),
        _ => None,
    },
};

impl Source {
    /// A checkout that the person names.
    ///
    /// # Errors
    /// It is none of this crate.
    pub(super) fn checkout(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        match fs::canonicalize(path) {
            Ok(checkout) if is_larder(&checkout) => Ok(Self::Checkout(checkout)),
            Ok(checkout) if checkout.join("Cargo.toml").is_file() => {
                Err(format!("--path {shown}: it is not a checkout of Larder"))
            }
            _ => Err(format!("--path {shown}: no Cargo.toml")),
        }
    }

    /// The source from which this binary was built.
    ///
    /// # Errors
    /// It is not known, or no longer there.
    pub(super) fn of_this_binary() -> Result<Self, String> {
        Self::of(&BUILT)
    }

    fn of(built: &Built) -> Result<Self, String> {
        if let Some((url, revision)) = built.git {
            return Ok(Self::Git { url: url.to_owned(), revision: revision.to_owned() });
        }

        let directory = Path::new(built.directory);
        // Cargo unpacks the crates of registries here.
        let is_from_registry = directory.components().any(|part| part.as_os_str() == "registry")
            && !directory.join(".git").exists();
        if is_from_registry {
            return Ok(Self::Registry(env!("CARGO_PKG_VERSION")));
        }
        if is_larder(directory) {
            return Ok(Self::Checkout(directory.to_owned()));
        }

        Err(format!(
            "this larder was built in {}, which is no longer there, so there is no crate to build on. Give a checkout: --path CHECKOUT",
            directory.display()
        ))
    }

    /// The dependency in Cargo.toml.
    pub(super) fn dependency(&self) -> String {
        match self {
            Self::Checkout(path) => format!("{{ path = {:?} }}", path.display().to_string()),
            Self::Git { url, revision } => format!("{{ git = {url:?}, rev = {revision:?} }}"),
            Self::Registry(version) => format!("{version:?}"),
        }
    }

    /// The lines of the Dockerfile that bring a checkout into the image: it is outside of the
    /// project, which is the context of the build.
    pub(super) fn copied_checkout(&self) -> String {
        let Self::Checkout(path) = self else { return String::new() };
        let path = path.display().to_string();
        format!(
            "# The checkout that Cargo.toml names: docker build --build-context larder={path} .\n\
             COPY --from=larder [\".\", {path:?}]\n"
        )
    }
}

/// Whether a directory has the manifest of this crate.
fn is_larder(directory: &Path) -> bool {
    let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap_or_default();
    let manifest = manifest.parse::<toml::Table>();
    manifest.is_ok_and(|manifest| {
        let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
        name == Some(env!("CARGO_PKG_NAME"))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_source_of_a_binary_is_found_or_missed() {
        let here = Built { directory: env!("CARGO_MANIFEST_DIR"), git: None };
        assert_eq!(Source::of(&here).unwrap(), Source::Checkout(env!("CARGO_MANIFEST_DIR").into()));

        let git = Some(("https://git.example/larder", "0123abc"));
        let released = Source::of(&Built { directory: "/nowhere", git }).unwrap();
        assert_eq!(
            released.dependency(),
            r#"{ git = "https://git.example/larder", rev = "0123abc" }"#
        );
        assert_eq!(released.copied_checkout(), "");

        let unpacked = "/home/me/.cargo/registry/src/index/larder-0.1.0";
        let published = Source::of(&Built { directory: unpacked, git: None }).unwrap();
        assert_eq!(published.dependency(), format!("{:?}", env!("CARGO_PKG_VERSION")));

        let gone = Source::of(&Built { directory: "/nowhere", git: None }).unwrap_err();
        assert!(gone.contains("/nowhere") && gone.contains("--path CHECKOUT"), "{gone}");
    }

    #[test]
    fn a_checkout_is_one_of_this_crate() {
        assert!(Source::checkout(Path::new(env!("CARGO_MANIFEST_DIR"))).is_ok());
        let other = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/query");
        let problem = Source::checkout(&other).unwrap_err();
        assert!(problem.ends_with("it is not a checkout of Larder"), "{problem}");
        let none = Source::checkout(Path::new("/nowhere")).unwrap_err();
        assert_eq!(none, "--path /nowhere: no Cargo.toml");
    }
}
