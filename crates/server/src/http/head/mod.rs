//! [`Head`]: the head of a request as one value. Nothing else looks up a header by hand: what a
//! header means is read here, in one place and one way.

mod accept;
mod browser;
mod coding;
mod protocol;
mod weight;

use std::net::{IpAddr, SocketAddr};

use axum::{
    body::Body,
    extract::{ConnectInfo, Request},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{self, AsHeaderName},
    request::Parts,
};

pub(super) use self::protocol::SESSION;
use super::TrustedProxies;

/// The head of a request, whose parts are parsed when they are asked for: most requests need few
/// of them.
#[derive(Debug, Clone)]
pub(in crate::http) struct Head {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    peer: Option<IpAddr>,
}

/// A header that must not occur twice does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Repeated;

impl Head {
    /// Splits a request, which may come through these proxies.
    pub(in crate::http) fn split(request: Request, proxies: &TrustedProxies) -> (Self, Body) {
        let (Parts { method, uri, headers, extensions, .. }, body) = request.into_parts();
        let mut head = Self { method, target: uri, headers, peer: None };

        let peer = extensions.get::<ConnectInfo<SocketAddr>>();
        head.peer = peer.map(|ConnectInfo(peer)| proxies.client(peer.ip(), &head));
        (head, body)
    }

    pub(in crate::http) fn method(&self) -> &Method {
        &self.method
    }

    pub(in crate::http) fn target(&self) -> &Uri {
        &self.target
    }

    pub(in crate::http) fn path(&self) -> &str {
        self.target.path()
    }

    /// The query; empty without one.
    pub(in crate::http) fn query(&self) -> &str {
        self.target.query().unwrap_or_default()
    }

    /// The first value of a parameter of the query, which is encoded as forms are.
    pub(in crate::http) fn parameter(&self, name: &str) -> Option<String> {
        field(self.query().as_bytes(), name)
    }

    /// The address that the request came from: a proxy's, if there is one that is not trusted.
    pub(in crate::http) fn peer(&self) -> Option<IpAddr> {
        self.peer
    }

    /// The method and the path, for the audit log. The query may contain a token.
    pub(in crate::http) fn action(&self) -> String {
        format!("{} {}", self.method, self.path())
    }

    /// The values of the `Authorization` headers.
    pub(in crate::http) fn credentials(&self) -> impl Iterator<Item = &[u8]> {
        self.values(&header::AUTHORIZATION).map(HeaderValue::as_bytes)
    }

    /// The announced length of the body. None if there is no number.
    pub(in crate::http) fn content_length(&self) -> Option<u64> {
        self.text(&header::CONTENT_LENGTH)?.parse().ok()
    }

    /// The media type of the body without its parameters; empty without one.
    pub(in crate::http) fn media_type(&self) -> &str {
        let given = self.text(&header::CONTENT_TYPE).unwrap_or_default();
        given.split(';').next().unwrap_or_default().trim()
    }

    pub(in crate::http) fn has(&self, name: &HeaderName) -> bool {
        self.headers.contains_key(name)
    }

    /// All values of a header.
    pub(in crate::http) fn values<'a>(
        &'a self,
        name: &HeaderName,
    ) -> impl DoubleEndedIterator<Item = &'a HeaderValue> + use<'a> {
        self.headers.get_all(name).iter()
    }

    /// The first value of a header.
    pub(in crate::http) fn first(&self, name: &HeaderName) -> Option<&HeaderValue> {
        self.headers.get(name)
    }

    /// The first value of a header, if it is text.
    pub(in crate::http) fn text(&self, name: &HeaderName) -> Option<&str> {
        self.first(name)?.to_str().ok()
    }

    /// The value of a header that must not occur twice: a proxy in front may have read the other
    /// value.
    pub(in crate::http) fn only(
        &self,
        name: impl AsHeaderName,
    ) -> Result<Option<&HeaderValue>, Repeated> {
        // Fast path: the map knows if no header occurs twice.
        if self.headers.len() == self.headers.keys_len() {
            return Ok(self.headers.get(name));
        }

        let mut values = self.headers.get_all(name).iter();
        let value = values.next();
        if values.next().is_some() { Err(Repeated) } else { Ok(value) }
    }

    /// The items of all values of a header that is a list. Values that are no text are left out.
    pub(in crate::http) fn list<'a>(
        &'a self,
        name: &HeaderName,
    ) -> impl Iterator<Item = &'a str> + use<'a> {
        let values = self.values(name).filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(str::trim)
    }
}

/// The first value of a field of a form.
pub(in crate::http) fn field(form: &[u8], name: &str) -> Option<String> {
    let mut fields = url::form_urlencoded::parse(form);
    fields.find(|(given, _)| given == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
impl From<HeaderMap> for Head {
    /// The head of a POST request to `/`.
    fn from(headers: HeaderMap) -> Self {
        Self { method: Method::POST, target: Uri::from_static("/"), headers, peer: None }
    }
}

#[cfg(test)]
impl Head {
    /// The head of a POST request with these headers.
    pub(in crate::http) fn of(headers: &[(HeaderName, &str)]) -> Self {
        let value = |value: &str| HeaderValue::from_str(value).expect("it is a value");
        let pairs = headers.iter().map(|(name, given)| (name.clone(), value(given)));
        // Collecting would replace values of the same name.
        pairs
            .fold(HeaderMap::new(), |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            })
            .into()
    }

    pub(in crate::http) fn to(self, target: &str) -> Self {
        Self { target: target.parse().expect("it is a URI"), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: HeaderName = HeaderName::from_static("x-name");

    #[test]
    fn a_header_that_occurs_twice_has_no_only_value() {
        let once = Head::of(&[(NAME, "a"), (header::ACCEPT, "b"), (header::ACCEPT, "c")]);
        assert_eq!(
            once.only(&NAME).map(|value| value.map(HeaderValue::as_bytes)),
            Ok(Some(&b"a"[..]))
        );
        assert_eq!(once.only(&header::ACCEPT), Err(Repeated));
        assert_eq!(once.only(&header::ORIGIN), Ok(None));

        assert_eq!(Head::of(&[(NAME, "a"), (NAME, "a")]).only(&NAME), Err(Repeated));
        assert_eq!(Head::of(&[]).only(&NAME), Ok(None));
    }

    #[test]
    fn a_list_has_the_items_of_all_values() {
        let head = Head::of(&[(NAME, "a, b"), (header::ACCEPT, "x"), (NAME, "c")]);
        assert_eq!(head.list(&NAME).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(head.list(&header::ORIGIN).count(), 0);
    }

    #[test]
    fn the_media_type_has_no_parameters() {
        for (given, expected) in [
            ("text/csv; charset=utf-8", "text/csv"),
            (" Text/CSV ;x", "Text/CSV"),
            ("", ""),
            (";", ""),
        ] {
            assert_eq!(Head::of(&[(header::CONTENT_TYPE, given)]).media_type(), expected);
        }
        assert_eq!(Head::of(&[]).media_type(), "");
    }

    #[test]
    fn a_parameter_is_decoded_and_the_first_counts() {
        let head = Head::of(&[]).to("/a?x=1&name=a+b%26&name=c");
        assert_eq!(head.parameter("name").as_deref(), Some("a b&"));
        assert_eq!(head.parameter("y"), None);
    }
}
