//! Errors in the words of a person at a terminal. A server's own texts are for models, and name
//! tools as the next step.

use std::{error::Error, io};

use larder_protocol::quote::visible;
use larder_records::words::number;

use super::{ClientError, endpoint::Endpoint, trust::CA_AS_SERVER};

/// Why a server cannot be reached. `has_ca` says whether the command names certificates to trust.
pub(in crate::cli) fn unreachable(
    endpoint: &Endpoint,
    has_ca: bool,
    error: &reqwest::Error,
) -> ClientError {
    let mut tls = None;
    let mut io_kind = None;
    let mut cause: &dyn Error = error;
    let mut is_dns = false;

    while let Some(source) = cause.source() {
        // A local file failed while it was read and sent.
        if let Some(ClientError::Usage(problem)) = source.downcast_ref() {
            return ClientError::Usage(problem.clone());
        }
        if let Some(error) = source.downcast_ref::<io::Error>() {
            io_kind = Some(error.kind());
            tls = tls_within(error).or(tls);
        }
        tls = source.downcast_ref::<rustls::Error>().cloned().or(tls);
        is_dns |= source.to_string().starts_with("dns error");
        cause = source;
    }

    let url = endpoint.shown();
    let host = endpoint.url().host_str().unwrap_or_default();
    ClientError::Unreachable(match (tls, io_kind) {
        (Some(error), _) => of_tls(endpoint, has_ca, host, &error),
        _ if is_dns => {
            format!("There is no host {host}. Another server: --server URL or LARDER_URL.")
        }
        (_, Some(io::ErrorKind::ConnectionRefused)) => {
            let start = if endpoint.is_local() { " Start one: larder serve." } else { "" };
            format!("No server at {url}.{start} Another one: --server URL or LARDER_URL.")
        }
        _ if error.is_timeout() => format!("{url} does not answer in time."),
        // A server for TLS answers a plain request with a record of TLS.
        _ if cause.to_string().contains("invalid HTTP version parsed")
            && endpoint.url().scheme() == "http" =>
        {
            format!(
                "{url} does not speak HTTP. If it speaks TLS: {}",
                endpoint.with_scheme("https")
            )
        }
        _ => format!("{url}: {}", without_code(&cause.to_string())),
    })
}

/// The error of TLS in an error of the system, which wraps it once or several times.
fn tls_within(error: &io::Error) -> Option<rustls::Error> {
    let inner = error.get_ref()?;
    match inner.downcast_ref::<io::Error>() {
        Some(error) => tls_within(error),
        None => inner.downcast_ref::<rustls::Error>().cloned(),
    }
}

fn of_tls(endpoint: &Endpoint, has_ca: bool, host: &str, error: &rustls::Error) -> String {
    use rustls::{CertificateError as Certificate, Error};

    let url = endpoint.shown();
    match error {
        Error::InvalidMessage(_) => {
            format!("{url} does not speak TLS: use {}", endpoint.with_scheme("http"))
        }
        Error::InvalidCertificate(Certificate::UnknownIssuer) if has_ca => format!(
            "The certificate of {host} is signed by none of the certificates of --ca, nor by anybody whom this machine trusts."
        ),
        Error::InvalidCertificate(Certificate::UnknownIssuer) => format!(
            "The certificate of {host} is signed by nobody whom this machine trusts. If you trust it: --ca FILE, with it or its authority's certificate in PEM."
        ),
        Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
            format!("The certificate of {host} has expired.")
        }
        Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => format!("The certificate of {host} is for another name."),
        // Without the end-entity rule, which only trusted files get around.
        Error::InvalidCertificate(Certificate::Other(other))
            if other.to_string() == CA_AS_SERVER =>
        {
            format!(
                "The certificate of {host} is an authority's. If you trust it: --ca FILE, with it in PEM."
            )
        }
        other => format!("{url}: {other}"),
    }
}

/// The advice at a server that asks for a login.
pub(in crate::cli) fn no_login(url: &str) -> String {
    format!(
        "{url} asks who you are. Log in: larder login {url}. Or give a token: --token TOKEN or LARDER_TOKEN."
    )
}

/// An error of the system without its number.
pub(in crate::cli) fn without_code(text: &str) -> String {
    let text = text.rsplit_once(" (os error").map_or(text, |(text, _)| text);
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// The text of a tool or of the content's endpoint, for a person.
pub(in crate::cli) fn told(text: &str) -> String {
    let told = not_found(text)
        .or_else(|| binary(text))
        .or_else(|| in_use(text))
        .or_else(|| full(text))
        .or_else(|| too_long(text));
    let told = told.unwrap_or_else(|| without_next_call(text));
    visible(&told).into_owned()
}

fn not_found(text: &str) -> Option<String> {
    let uri = text.strip_prefix("Resource not found: ")?;
    Some(format!("There is no resource {uri}. List them: larder ls"))
}

fn binary(text: &str) -> Option<String> {
    let (uri, rest) = text.split_once(" is binary (")?;
    let (mime_type, _) = rest.split_once(')')?;
    Some(format!("{uri} is binary ({mime_type}). Save it: larder cat {uri} > FILE"))
}

fn in_use(text: &str) -> Option<String> {
    let (uri, _) = text.split_once(" is in use.")?;
    Some(format!("{uri} exists already. Delete it first: larder rm {uri}"))
}

/// The setting of the quota depends on the store, which a client does not know.
const QUOTA: &str =
    "bytes_per_owner in the section [memory], [redis] or [objects] of its configuration";

fn full(text: &str) -> Option<String> {
    let first_number = || {
        let digits = text.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?;
        digits.parse::<u64>().ok()
    };

    if text.starts_with("The content is larger than all your resources may be") {
        let bytes = number(first_number()?);
        return Some(format!(
            "Too large: this server stores at most {bytes} bytes for you. The setting is {QUOTA}."
        ));
    }
    if text.starts_with("Your resources would exceed") {
        let bytes = number(first_number()?);
        let (_, rest) = text.split_once("bytes; ")?;
        let used = number(rest.split(' ').next()?.parse().ok()?);
        return Some(format!(
            "No room: this server stores at most {bytes} bytes for you, and {used} are used. Make room: larder rm URI. The setting is {QUOTA}."
        ));
    }
    if text.starts_with("You have ") && text.contains(" are allowed.") {
        let count = number(first_number()?);
        return Some(format!(
            "No room: you have {count} resources, as many as this server allows. Make room: larder rm URI. The setting is resources_per_owner."
        ));
    }
    None
}

fn too_long(text: &str) -> Option<String> {
    let seconds = text.strip_prefix("ttl must be at most ")?.strip_suffix(" seconds")?;
    let seconds = std::time::Duration::from_secs(seconds.parse().ok()?);
    let longest = duration(seconds);
    Some(format!("--ttl may be at most {longest} on this server. The setting is store.max_ttl."))
}

/// A duration as people write one.
fn duration(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    let units = [("d", 86_400), ("h", 3600), ("m", 60)];
    let unit =
        units.iter().find(|(_, length)| seconds >= *length && seconds.is_multiple_of(*length));
    unit.map_or_else(
        || format!("{seconds}s"),
        |(unit, length)| format!("{}{unit}", seconds / length),
    )
}

/// The text up to the sentence that names the next call of a model.
fn without_next_call(text: &str) -> String {
    let Some(call) = text.find("_resource {\"").or_else(|| text.find("_resources {\"")) else {
        return text.to_owned();
    };
    let before = &text[..call];
    match before.rfind(". ") {
        Some(end) => before[..=end].to_owned(),
        None => text.to_owned(),
    }
}

/// Why a regular expression cannot be used.
pub(in crate::cli) fn bad_pattern(pattern: &str, text: &str) -> Option<String> {
    let reason = text.strip_prefix("query is not a valid regular expression: ")?;
    let reason = reason.split(". To search").next().unwrap_or(reason);
    let escaped = regex::escape(pattern);
    let quoted =
        if escaped.contains('\'') { format!("{escaped:?}") } else { format!("'{escaped}'") };
    Some(format!(
        "{pattern} is not a regular expression: {reason}. For the text itself: -F, or {quoted}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_models_become_texts_for_people() {
        for (text, expected) in [
            ("Resource not found: x:a", "There is no resource x:a. List them: larder ls"),
            (
                "x:b is in use. Choose another URI, or delete that resource first.",
                "x:b exists already. Delete it first: larder rm x:b",
            ),
            (
                "a:b is binary (image/png) and has no lines to search. Read it with read_resource {\"uri\":\"a:b\",\"unit\":\"bytes\"}.",
                "a:b is binary (image/png). Save it: larder cat a:b > FILE",
            ),
            (
                "ttl must be at most 2592000 seconds",
                "--ttl may be at most 30d on this server. The setting is store.max_ttl.",
            ),
            (
                "ttl must be at most 90 seconds",
                "--ttl may be at most 90s on this server. The setting is store.max_ttl.",
            ),
            ("Stored. Done. Next: read_resource {\"uri\":1}.", "Stored. Done."),
            ("A text of another server.", "A text of another server."),
            ("You have a cold.", "You have a cold."),
            ("", ""),
            ("\u{1b}[2J", "\\u{1b}[2J"),
        ] {
            assert_eq!(told(text), expected);
        }
    }

    #[test]
    fn a_pattern_is_escaped_for_the_shell() {
        let text = "query is not a valid regular expression: unclosed group. To search for …";
        assert_eq!(
            bad_pattern("(", text).as_deref(),
            Some(
                r"( is not a regular expression: unclosed group. For the text itself: -F, or '\('"
            )
        );
        assert_eq!(
            bad_pattern("it's (", text).as_deref(),
            Some(
                r#"it's ( is not a regular expression: unclosed group. For the text itself: -F, or "it's \\(""#
            )
        );
        assert_eq!(bad_pattern("(", "Resource not found: x"), None);
    }
}
