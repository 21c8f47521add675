//! The modern era's rules for a request (2026-07-28).

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{Era, ResponseEncoder, StateSealer};
use crate::{
    auth::Identity,
    dispatch::{Call, Dispatcher},
    handler::Asking,
    protocol::{Fault, Member, Meta, Method, ProtocolVersion, Request},
};

/// What a transport with headers carries beside the body, by header name in
/// lower case (Streamable HTTP: Request Metadata).
#[derive(Clone, Copy)]
pub struct MirroredHeaders<'a>(pub &'a dyn Fn(&str) -> Option<&'a str>);

/// Accepts modern requests.
#[derive(Debug, Clone)]
pub struct Modern {
    dispatcher: Arc<Dispatcher>,
    sealer: StateSealer,
    max: ProtocolVersion,
    /// What replies carry.
    pub encoder: ResponseEncoder,
}

impl Modern {
    /// Accepts versions up to `max`.
    pub fn new(dispatcher: Arc<Dispatcher>, sealer: StateSealer, max: ProtocolVersion) -> Self {
        let encoder = ResponseEncoder::new(Era::Modern, dispatcher.registry().info(), max);
        Self { dispatcher, sealer, max, encoder }
    }

    /// Checks a request: its metadata, then headers against body, then the
    /// version, then the method. A transport without headers has no mirror.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn accept(
        &self,
        request: &Request,
        meta: Meta,
        mirror: Option<MirroredHeaders<'_>>,
        identity: Identity,
    ) -> Result<Call, Fault> {
        let version = meta.protocol_version.as_deref().ok_or_else(|| missing("protocolVersion"))?;
        if !meta.declares_capabilities {
            return Err(missing("clientCapabilities"));
        }
        if let Some(MirroredHeaders(header)) = mirror {
            same("MCP-Protocol-Version", header("mcp-protocol-version"), version)?;
        }
        let known = ProtocolVersion::parse(version).filter(|v| v.is_modern() && *v <= self.max);
        if known.is_none() {
            return Err(Fault::unsupported_version(version, self.max));
        }
        if let Some(MirroredHeaders(header)) = mirror {
            same("Mcp-Method", header("mcp-method"), &request.method)?;
        }
        let method = Method::parse(&request.method).filter(|m| m.in_modern());
        let method = method.ok_or_else(|| Fault::MethodNotFound(request.method.clone()))?;
        if let Some(mirror) = mirror {
            self.check_names(method, request, mirror)?;
        }
        let asking = match method {
            Method::CallTool | Method::GetPrompt | Method::ReadResource => {
                let rounds = self.sealer.rounds(request, identity.owner())?;
                Asking::Rounds(Arc::new(rounds))
            }
            _ => Asking::Unavailable("This request cannot ask for input."),
        };
        Ok(Call {
            method,
            params: request.params.clone(),
            progress_token: meta.progress_token,
            trace: meta.trace,
            log_level: meta.log_level,
            identity,
            client: meta.client,
            session: None,
            asking,
        })
    }

    /// `Mcp-Name`, and `Mcp-Param-*` of a tool's arguments that have them.
    fn check_names(
        &self,
        method: Method,
        request: &Request,
        MirroredHeaders(header): MirroredHeaders<'_>,
    ) -> Result<(), Fault> {
        let Some(member) = method.named_by() else { return Ok(()) };
        // What is not there, or is no string, is the method's own to complain of.
        let Ok(Some(name)) = request.params.text(member) else { return Ok(()) };
        let named = header("mcp-name").map(|value| decode("Mcp-Name", value)).transpose()?;
        same("Mcp-Name", named.as_deref(), &name)?;
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
            let told = header(name).map(|value| decode(name, value)).transpose()?;
            match (parameter.value(&arguments), told) {
                (None, None) => {}
                (Some(value), Some(told)) if says_the_same(value, &told) => {}
                (Some(_), None) => {
                    return Err(Fault::HeaderMismatch(format!(
                        "the {name} header is missing; it must mirror the argument in the body"
                    )));
                }
                _ => {
                    return Err(Fault::HeaderMismatch(format!(
                        "the {name} header does not say what the argument in the body says"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Integers are compared as numbers (Streamable HTTP: Server Validation).
fn says_the_same(value: &Value, header: &str) -> bool {
    match value {
        Value::String(text) => text == header,
        Value::Bool(flag) => header == if *flag { "true" } else { "false" },
        Value::Number(number) => {
            number.to_string() == header
                || header.parse::<f64>().is_ok_and(|told| number.as_f64() == Some(told))
        }
        _ => false,
    }
}

fn missing(member: &str) -> Fault {
    Fault::MissingMeta(format!(
        "Every request carries params._meta with io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities; {member} is missing."
    ))
}

fn same(header: &str, value: Option<&str>, body: &str) -> Result<(), Fault> {
    match value {
        Some(value) if value == body => Ok(()),
        Some(value) => Err(Fault::HeaderMismatch(format!(
            "the {header} header says {value:?}, the body says {body:?}"
        ))),
        None => Err(Fault::HeaderMismatch(format!(
            "the {header} header is missing; it must say {body:?}, as the body does"
        ))),
    }
}

/// Decodes the Base64 sentinel (Streamable HTTP: Value Encoding).
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
