//! [`Outline`]: what headers repeat of a message.

use bytes::Bytes;
use larder_oauth::Identity;
use larder_protocol::{self, Member, Message, Meta, RequestId};

use crate::link::Link;

/// The parts of a message that headers repeat.
#[derive(Default)]
pub(super) struct Outline {
    pub(super) id: Option<i64>,
    pub(super) method: String,
    /// The tool, prompt or resource.
    pub(super) name: Option<String>,
    pub(super) is_modern: bool,
    /// Arguments that are mirrored: names of headers and values.
    pub(super) mirrored: Vec<(String, String)>,
    /// The request that a notification cancels.
    pub(super) cancels: Option<i64>,
    /// The caller of the request; `None` for a request of Larder's own.
    pub(super) caller: Option<Identity>,
}

impl Outline {
    pub(super) fn of(message: &Bytes, link: &Link) -> Self {
        match larder_protocol::parse(message) {
            Ok(Message::Request(request)) => {
                let RequestId::Number(id) = request.id else { return Self::default() };
                let member = match request.method.as_str() {
                    "resources/read" => Member::Uri,
                    _ => Member::Name,
                };
                let name: Option<String> =
                    request.params.text(member).ok().flatten().map(Into::into);
                let meta = Meta::read(&request.params).unwrap_or_default();
                let is_modern = meta.protocol_version.is_some();

                let mirrored = match &name {
                    Some(tool) if is_modern && request.method == "tools/call" => {
                        link.mirrored.headers(tool, &request.params)
                    }
                    _ => Vec::new(),
                };

                let method = request.method;
                let caller = link.caller(id);
                Self { id: Some(id), method, name, is_modern, mirrored, cancels: None, caller }
            }
            Ok(Message::Notification { method, params }) => {
                let cancels = match Message::cancelled(&method, &params) {
                    Some(RequestId::Number(id)) => Some(id),
                    _ => None,
                };
                Self { method, cancels, ..Self::default() }
            }
            _ => Self::default(),
        }
    }
}
