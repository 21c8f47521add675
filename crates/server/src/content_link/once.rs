//! The claims of a link that works once.

use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Claims, Download};

/// A link that gives one link to download, to whoever asks first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Once {
    /// The download that the link permits. Its nonce names the link.
    #[serde(flatten)]
    pub(crate) download: Download,
    #[serde(rename = "f")]
    pub(crate) file_name: String,
}

impl Claims for Once {
    const PURPOSE: &'static str = "once GET POST";

    fn expires(&self) -> Timestamp {
        self.download.expires
    }
}
