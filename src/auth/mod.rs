//! Who calls. Without authentication everyone is [`Principal::Local`].

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The caller, as the server knows it (never as the client says).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Principal {
    /// Nobody was asked who they are: loopback, stdio.
    #[default]
    Local,
}

impl Principal {
    /// The scope in which this caller's resources and sessions live.
    pub fn owner(&self) -> Owner {
        match self {
            Self::Local => Owner(Arc::from("local")),
        }
    }
}

/// Whose a resource is: everything dynamic is scoped by it, and another
/// owner's things look as if they were not there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owner(Arc<str>);

impl Owner {
    /// An owner of that name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
