//! A POST request.

use larder_oauth::Identity;

use crate::{
    dispatch::Reader,
    era::Accepts,
    http::{Endpoint, head::Head},
};

/// A POST request, without its body.
pub(super) struct Post<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) head: &'a Head,
    pub(super) identity: Identity,
    /// The reader of the response: a model or a person.
    pub(super) reader: Reader,
    /// The kinds of messages that the caller accepts.
    pub(super) accepts: Accepts,
}

impl Post<'_> {
    /// The kinds of messages that a call may be answered by. With `json_response` there are no
    /// streams, apart from those that a client opens to listen.
    pub(super) fn answers(&self) -> Accepts {
        let Accepts { message, stream } = self.accepts;
        Accepts { message, stream: stream && !self.endpoint.options().json_response }
    }
}
