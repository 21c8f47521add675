//! A POST request.

use http::HeaderMap;
use larder_oauth::Identity;

use super::Endpoint;
use crate::era::Accepts;

/// A POST request, without its body.
pub(super) struct Post<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) headers: &'a HeaderMap,
    pub(super) identity: Identity,
    pub(super) accepts: Accepts,
}
