//! A POST request.

use http::HeaderMap;

use super::Endpoint;
use crate::{auth::Identity, era::Accepts};

/// A POST request, without its body.
pub(super) struct Post<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) headers: &'a HeaderMap,
    pub(super) identity: Identity,
    pub(super) accepts: Accepts,
}
