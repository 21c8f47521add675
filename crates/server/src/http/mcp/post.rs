//! A POST request.

use http::HeaderMap;
use larder_oauth::Identity;

use crate::{era::Accepts, http::Endpoint};

/// A POST request, without its body.
pub(in crate::http) struct Post<'a> {
    pub(in crate::http) endpoint: &'a Endpoint,
    pub(in crate::http) headers: &'a HeaderMap,
    pub(in crate::http) identity: Identity,
    pub(in crate::http) accepts: Accepts,
}
