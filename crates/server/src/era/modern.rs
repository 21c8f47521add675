//! The checks of the modern era on a request (2026-07-28).

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use larder_oauth::Identity;
use larder_protocol::{Fault, Member, Meta, Method, ProtocolVersion, Request, quote::quoted};
use serde_json::Value;

use super::{Era, ResponseEncoder, StateSealer};
use crate::{
    dispatch::{Call, Dispatcher, Reader},
    handler::AskMode,
};

/// Looks up a request header by its lower-case name. Headers mirror parts of the body
/// (Streamable HTTP: Request Metadata).
#[derive(Clone, Copy)]
pub struct MirroredHeaders<'a>(pub &'a dyn Fn(&str) -> Option<&'a str>);

/// Checks modern requests.
#[derive(Debug, Clone)]
pub struct Modern {
    dispatcher: Arc<Dispatcher>,
    sealer: StateSealer,
    max: ProtocolVersion,
    /// The encoder of replies.
    pub encoder: ResponseEncoder,
}

impl Modern {
    /// Accepts protocol versions up to `max`.
    pub fn new(dispatcher: Arc<Dispatcher>, sealer: StateSealer, max: ProtocolVersion) -> Self {
        let info = dispatcher.registry().info();
        let traffic = Arc::clone(dispatcher.traffic());
        let encoder = ResponseEncoder::new(Era::Modern, info, max, traffic);
        Self { dispatcher, sealer, max, encoder }
    }

    /// Checks a request: its metadata, then headers against the body, then the version,
    /// then the method. `headers` is None on a transport without headers.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn accept(
        &self,
        request: &Request,
        meta: Meta,
        headers: Option<MirroredHeaders<'_>>,
        identity: Identity,
        reader: Reader,
    ) -> Result<Call, Fault> {
        let Some(version) = meta.protocol_version.as_deref() else {
            return Err(self.undeclared(headers));
        };

        if !meta.declares_capabilities {
            return Err(missing_meta("clientCapabilities"));
        }

        if let Some(MirroredHeaders(header)) = headers {
            check_header("MCP-Protocol-Version", header("mcp-protocol-version"), version)?;
        }

        let known = ProtocolVersion::parse(version).filter(|v| v.is_modern() && *v <= self.max);
        if known.is_none() {
            return Err(Fault::unsupported_version(version, self.max));
        }

        if let Some(MirroredHeaders(header)) = headers {
            check_header("Mcp-Method", header("mcp-method"), &request.method)?;
        }

        let method = Method::parse(&request.method).filter(|m| m.in_modern());
        let method = method.ok_or_else(|| Fault::MethodNotFound(request.method.clone()))?;
        if let Some(headers) = headers {
            self.check_names(method, request, headers)?;
        }

        let asking = match method {
            Method::CallTool | Method::GetPrompt | Method::ReadResource => {
                let rounds = self.sealer.rounds(request, identity.owner())?;
                AskMode::RoundTrips(Arc::new(rounds))
            }
            _ => AskMode::Unavailable("This method cannot ask the client for input."),
        };

        Ok(Call {
            method,
            params: request.params.clone(),
            progress_token: meta.progress_token,
            trace: meta.trace,
            log_level: meta.log_level,
            validity: identity.validity(),
            identity,
            client: meta.client,
            reader,
            session: None,
            client_session: None,
            asking,
        })
    }

    /// The error for a request whose metadata names no version. A client whose header names an
    /// unknown one can continue only if it learns the supported versions.
    fn undeclared(&self, headers: Option<MirroredHeaders<'_>>) -> Fault {
        let header = headers.and_then(|MirroredHeaders(header)| header("mcp-protocol-version"));
        match header {
            Some(version) if ProtocolVersion::parse(version).is_none() => {
                Fault::unsupported_version(version, self.max)
            }
            _ => missing_meta("protocolVersion"),
        }
    }

    /// Checks `Mcp-Name`, and `Mcp-Param-*` for the tool arguments that declare it.
    fn check_names(
        &self,
        method: Method,
        request: &Request,
        MirroredHeaders(header): MirroredHeaders<'_>,
    ) -> Result<(), Fault> {
        let Some(member) = method.mirrored_name() else { return Ok(()) };

        // The method itself reports a missing or malformed name.
        let Ok(Some(name)) = request.params.text(member) else { return Ok(()) };

        let mirrored = header("mcp-name").map(|value| decode("Mcp-Name", value)).transpose()?;
        check_header("Mcp-Name", mirrored.as_deref(), &name)?;
        if method != Method::CallTool {
            return Ok(());
        }

        let parameters = self.dispatcher.registry().header_parameters(&name);
        if parameters.is_empty() {
            return Ok(());
        }

        let arguments: Value = request.params.read(Member::Arguments)?.unwrap_or_default();
        for parameter in parameters {
            let name = &parameter.header;
            let mirrored = header(name).map(|value| decode(name, value)).transpose()?;

            match (parameter.value(&arguments), mirrored) {
                (None, None) => {}
                (Some(value), Some(mirrored)) if header_matches(value, &mirrored) => {}
                (Some(_), None) => {
                    return Err(Fault::HeaderMismatch(format!(
                        "the {name} header is missing; it must mirror the argument in the body"
                    )));
                }
                _ => {
                    return Err(Fault::HeaderMismatch(format!(
                        "the {name} header differs from the argument in the body"
                    )));
                }
            }
        }

        Ok(())
    }
}

/// Compares integers as numbers (Streamable HTTP: Server Validation).
fn header_matches(value: &Value, header: &str) -> bool {
    match value {
        Value::String(text) => text == header,
        Value::Bool(flag) => header == if *flag { "true" } else { "false" },
        Value::Number(number) => {
            number.to_string() == header
                || header.parse::<f64>().is_ok_and(|mirrored| number.as_f64() == Some(mirrored))
        }
        _ => false,
    }
}

fn missing_meta(member: &str) -> Fault {
    Fault::MissingMeta(format!(
        "Every request needs params._meta with io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities; {member} is missing."
    ))
}

fn check_header(header: &str, value: Option<&str>, body: &str) -> Result<(), Fault> {
    match value {
        Some(value) if value == body => Ok(()),
        Some(value) => Err(Fault::HeaderMismatch(format!(
            "the {header} header is {}, but the body has {}",
            quoted(value),
            quoted(body)
        ))),
        None => Err(Fault::HeaderMismatch(format!(
            "the {header} header is missing; it must be {}, as in the body",
            quoted(body)
        ))),
    }
}

/// Decodes the Base64 sentinel form of a header value (Streamable HTTP: Value Encoding).
fn decode(header: &str, value: &str) -> Result<String, Fault> {
    let value = value.trim_matches([' ', '\t']);
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|v| v.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };

    let bytes = BASE64_STANDARD.decode(encoded).ok();
    bytes.and_then(|b| String::from_utf8(b).ok()).ok_or_else(|| {
        Fault::HeaderMismatch(format!("the {header} header is not valid Base64 of UTF-8"))
    })
}
