//! The claims of a link to upload content, and of the ID by which its maker asks about it.

use std::time::Duration;

use larder_oauth::Owner;
use larder_runtime::clock::Timestamp;
use larder_store::store::ResourceUri;
use serde::{Deserialize, Serialize};

use super::Claims;

/// One upload of one resource, for anyone with the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The owner of the resource that the upload becomes.
    #[serde(rename = "o")]
    pub(crate) owner: Owner,
    #[serde(rename = "u")]
    pub(crate) uri: ResourceUri,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub(crate) mime_type: Option<String>,
    /// The only size in bytes that is stored.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(crate) size: Option<u64>,
    /// The only digest that is stored, in hexadecimal.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub(crate) sha256: Option<String>,
    /// The time to live of the resource.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<Duration>,
    #[serde(rename = "e")]
    pub(crate) expires: Timestamp,
    /// Names the link where its use is noted.
    #[serde(rename = "n")]
    pub(crate) id: String,
}

impl Claims for Upload {
    const PURPOSE: &'static str = "upload GET PUT POST PATCH DELETE";

    fn expires(&self) -> Timestamp {
        self.expires
    }
}

/// The link that an ID was given for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Receipt {
    #[serde(rename = "n")]
    pub(crate) id: String,
    #[serde(rename = "u")]
    pub(crate) uri: ResourceUri,
    /// When the link expires.
    #[serde(rename = "l")]
    pub(crate) link_expires: Timestamp,
    /// When the use of the link is forgotten.
    #[serde(rename = "e")]
    pub(super) expires: Timestamp,
}

impl Claims for Receipt {
    const PURPOSE: &'static str = "upload receipt";

    fn expires(&self) -> Timestamp {
        self.expires
    }
}

/// How a link to upload is used. An upload claims the link before its content becomes visible, so
/// that only one of them completes. Times are leases: whoever uses the link renews them, so that a
/// crash does not use it up.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum UploadUse {
    /// The link was never used.
    #[default]
    Unused,
    /// Content arrives, at least until that time. Others may use the link as well.
    Receiving(Timestamp),
    /// By the upload of that ID, whose content is complete, until that time.
    Claimed(String, Timestamp),
    /// By the upload of that ID.
    Stored(String),
}

impl UploadUse {
    /// Whether the link still permits a request of that upload, or of a new one.
    pub(crate) fn permits(&self, upload: Option<&str>, now: Timestamp) -> bool {
        match self {
            Self::Unused | Self::Receiving(_) => true,
            Self::Claimed(by, until) => upload == Some(by) || *until <= now,
            Self::Stored(by) => upload == Some(by),
        }
    }

    /// Whether content arrives or is being stored.
    pub(crate) fn is_receiving(&self, now: Timestamp) -> bool {
        matches!(self, Self::Receiving(until) | Self::Claimed(_, until) if *until > now)
    }
}
