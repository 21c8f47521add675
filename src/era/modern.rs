//! The modern era's rules for a request (2026-07-28).

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{Dress, Era};
use crate::{
    auth::Principal,
    dispatch::Call,
    protocol::{ClientFacts, Fault, Meta, Method, ProtocolVersion, Request},
};

/// What a transport with headers carries beside the body
/// (Streamable HTTP: Standard Request Headers).
#[derive(Debug, Clone, Copy, Default)]
pub struct Mirror<'a> {
    /// `MCP-Protocol-Version`
    pub version: Option<&'a str>,
    /// `Mcp-Method`
    pub method: Option<&'a str>,
    /// `Mcp-Name`
    pub name: Option<&'a str>,
}

/// Accepts modern requests.
#[derive(Debug, Clone)]
pub struct Modern {
    max: ProtocolVersion,
    /// What replies carry.
    pub dress: Dress,
}

impl Modern {
    /// Accepts versions up to `max`.
    pub fn new(server: &rmcp::model::Implementation, max: ProtocolVersion) -> Self {
        Self { max, dress: Dress::new(Era::Modern, server, max) }
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
        mirror: Option<Mirror<'_>>,
        principal: Principal,
    ) -> Result<Call, Fault> {
        let version = meta.protocol_version.as_deref().ok_or_else(|| missing("protocolVersion"))?;
        let capabilities =
            meta.client_capabilities.clone().ok_or_else(|| missing("clientCapabilities"))?;
        if let Some(mirror) = mirror {
            same("MCP-Protocol-Version", mirror.version, version)?;
        }
        let known = ProtocolVersion::parse(version).filter(|v| v.is_modern() && *v <= self.max);
        if known.is_none() {
            return Err(Fault::UnsupportedVersion {
                requested: version.to_owned(),
                supported: ProtocolVersion::names_up_to(self.max),
            });
        }
        if let Some(mirror) = mirror {
            same("Mcp-Method", mirror.method, &request.method)?;
        }
        let method = Method::parse(&request.method).filter(|m| m.in_modern());
        let method = method.ok_or_else(|| Fault::MethodNotFound(request.method.clone()))?;
        if let Some(mirror) = mirror
            && let Some(name) = name_in_body(method, request)?
        {
            let header = mirror.name.map(decode).transpose()?;
            same("Mcp-Name", header.as_deref(), &name)?;
        }
        let client = ClientFacts { info: meta.client_info.clone(), capabilities };
        Ok(Call { method, params: request.params.clone(), meta, principal, client, session: None })
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

/// What the body says that `Mcp-Name` must mirror. What is not there, or is
/// no string, is the method's own to complain of.
fn name_in_body(method: Method, request: &Request) -> Result<Option<String>, Fault> {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(default, borrow)]
        name: Option<&'a RawValue>,
        #[serde(default, borrow)]
        uri: Option<&'a RawValue>,
    }
    let Some(member) = method.named_by() else { return Ok(None) };
    let named: Named<'_> = request.params.parse()?;
    let raw = if member == "name" { named.name } else { named.uri };
    let value = raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    Ok(value.and_then(|v| v.as_str().map(str::to_owned)))
}

/// Decodes the Base64 sentinel (Streamable HTTP: Value Encoding).
fn decode(value: &str) -> Result<String, Fault> {
    let value = value.trim_matches([' ', '\t']);
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|v| v.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };
    let bytes = BASE64_STANDARD.decode(encoded).ok();
    bytes.and_then(|b| String::from_utf8(b).ok()).ok_or_else(|| {
        Fault::HeaderMismatch("the Mcp-Name header is not valid Base64 of UTF-8".into())
    })
}
