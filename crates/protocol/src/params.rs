//! [`Params`]: the parameters of a message, as a slice of its body.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;

use super::{Fault, members};
use crate::quote::{parse_error, quoted};

/// The `params` member, not copied. One scan finds the members that several
/// layers need; each layer parses its own.
#[derive(Debug, Clone, Default)]
pub struct Params {
    /// Empty if `params` is absent.
    raw: Bytes,
    ranges: [ValueRange; Member::COUNT],
}

/// A parameter that several layers need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// `_meta`
    Meta,
    /// `name` of a tool or prompt
    Name,
    /// `uri` of a resource
    Uri,
    /// `taskId`
    TaskId,
    /// `arguments`
    Arguments,
    /// `inputResponses`
    InputResponses,
    /// `requestState`
    RequestState,
    /// `ref`, the prompt or template to complete
    Ref,
}

/// The offsets of a member's value; empty if the member is absent. They have
/// 32 bits to keep [`Params`] small, which is passed by value.
#[derive(Debug, Clone, Copy, Default)]
struct ValueRange {
    begin: u32,
    end: u32,
}

impl Member {
    const COUNT: usize = 8;

    /// The names, in the order of the variants.
    const NAMES: [&str; Self::COUNT] =
        ["_meta", "name", "uri", "taskId", "arguments", "inputResponses", "requestState", "ref"];

    /// The member's name in JSON.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl Params {
    /// Finds the members of an object that is known to be valid JSON.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] if one of the members occurs twice;
    /// [`Fault::InvalidRequest`] for 4 GiB and more.
    pub(super) fn new(raw: Bytes) -> Result<Self, Fault> {
        if u32::try_from(raw.len()).is_err() {
            return Err(Fault::InvalidRequest("The parameters are too long.".into()));
        }

        let found = members::find(&raw, &Member::NAMES).map_err(duplicate)?;
        let mut ranges = [ValueRange::default(); Member::COUNT];
        for (index, value) in found.into_iter().enumerate() {
            let Some((begin, end)) = value else { continue };
            if !is_absent(index, &raw[begin..end]) {
                // Both offsets fit into 32 bits, because the length does.
                let offset = |offset| u32::try_from(offset).unwrap_or(0);
                ranges[index] = ValueRange { begin: offset(begin), end: offset(end) };
            }
        }

        Ok(Self { raw, ranges })
    }

    /// Parses all parameters into a struct. Absent `params` are an empty object.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the wrong member.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Fault> {
        serde_json::from_slice(self.as_bytes()).map_err(|e| Fault::invalid_params(describe(&e)))
    }

    /// The JSON of one member; `None` if it is absent or null.
    pub fn member(&self, member: Member) -> Option<&[u8]> {
        let ValueRange { begin, end } = self.ranges[member as usize];
        (begin < end).then(|| &self.raw[begin as usize..end as usize])
    }

    /// The JSON of one of the `arguments`; `None` if it is absent, null or given
    /// twice.
    pub fn argument(&self, name: &str) -> Option<&[u8]> {
        let arguments =
            self.member(Member::Arguments).filter(|json| json.first() == Some(&b'{'))?;
        let (begin, end) = members::find_one(arguments, name)?;
        arguments.get(begin..end).filter(|json| *json != b"null")
    }

    /// A copy with another `name`. `None` if there is no name.
    pub fn with_name(&self, name: &str) -> Option<Self> {
        self.member(Member::Name)?;
        let ValueRange { begin, end } = self.ranges[Member::Name as usize];

        let name = serde_json::Value::from(name).to_string();
        let before = &self.raw[..begin as usize];
        let after = &self.raw[end as usize..];
        Self::new([before, name.as_bytes(), after].concat().into()).ok()
    }

    /// The parameters of the tool call that the `arguments` of this call contain: its own `name`
    /// and `arguments`, and all other members of this call. `None` if there is no inner name, or
    /// a member occurs twice.
    pub fn inner_call(&self) -> Option<Self> {
        let outer = self.ranges[Member::Arguments as usize].begin as usize;
        let arguments =
            self.member(Member::Arguments).filter(|json| json.first() == Some(&b'{'))?;

        let members = [Member::Name, Member::Arguments];
        let found = members::find(arguments, &members.map(Member::name)).ok()?;

        let mut inner = self.clone();
        for (member, value) in members.into_iter().zip(found) {
            let value =
                value.filter(|(begin, end)| !is_absent(member as usize, &arguments[*begin..*end]));

            // Both offsets fit into 32 bits, because the end of the outer value does.
            let offset = |offset| u32::try_from(outer + offset).unwrap_or(0);
            inner.ranges[member as usize] =
                value.map_or_else(ValueRange::default, |(begin, end)| ValueRange {
                    begin: offset(begin),
                    end: offset(end),
                });
        }

        inner.member(Member::Name).is_some().then_some(inner)
    }

    /// Parses one member; `None` if it is absent or null.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the member.
    pub fn read<'a, T: Deserialize<'a>>(&'a self, member: Member) -> Result<Option<T>, Fault> {
        let Some(raw) = self.member(member) else { return Ok(None) };
        serde_json::from_slice(raw).map(Some).map_err(|error| {
            Fault::invalid_params(format!("{}: {}", member.name(), describe(&error)))
        })
    }

    /// The text of one member, copied only if it has escapes; `None` if it is
    /// absent or null.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the member.
    pub fn text(&self, member: Member) -> Result<Option<Cow<'_, str>>, Fault> {
        if let Some([b'"', text @ .., b'"']) = self.member(member)
            && !text.contains(&b'\\')
            && let Ok(text) = std::str::from_utf8(text)
        {
            return Ok(Some(text.into()));
        }
        Ok(self.read::<String>(member)?.map(Cow::Owned))
    }

    /// Parses one required member.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the member.
    pub fn required<'a, T: Deserialize<'a>>(&'a self, member: Member) -> Result<T, Fault> {
        self.read(member)?.ok_or_else(|| missing(member))
    }

    /// The text of one required member.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the member.
    pub fn required_text(&self, member: Member) -> Result<Cow<'_, str>, Fault> {
        self.text(member)?.ok_or_else(|| missing(member))
    }

    /// The raw JSON; `{}` if `params` is absent.
    pub fn as_bytes(&self) -> &[u8] {
        if self.raw.is_empty() { b"{}" } else { &self.raw }
    }
}

/// Whether a member's value means that there is none: null, or an empty list for an object, as
/// languages write it whose lists and objects are one type.
fn is_absent(member: usize, json: &[u8]) -> bool {
    let is_object = [Member::Meta as usize, Member::Arguments as usize].contains(&member);
    let inside = json.strip_prefix(b"[").and_then(|json| json.strip_suffix(b"]"));
    json == b"null" || (is_object && inside.is_some_and(|inside| inside.trim_ascii().is_empty()))
}

/// The fault of a member that occurs twice.
pub(super) fn duplicate(name: &str) -> Fault {
    Fault::invalid_params(format!("The member {} occurs twice.", quoted(name)))
}

fn missing(member: Member) -> Fault {
    Fault::invalid_params(format!("The member {:?} is missing.", member.name()))
}

/// The text of a `serde_json` error without its position, which would count
/// from the start of a part that the caller cannot see.
pub fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    parse_error(text.rfind(" at line ").map_or(&*text, |position| &text[..position]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: &'static str) -> Params {
        Params::new(Bytes::from_static(json.as_bytes())).expect("it is an object")
    }

    #[test]
    fn only_top_level_members_are_found() {
        let params =
            params(r#"{"x":{"name":1}, "name" : "a\u0062", "arguments":{"uri":2},"uri":null}"#);

        assert_eq!(params.read(Member::Name), Ok(Some("ab".to_owned())));
        assert_eq!(params.member(Member::Arguments), Some(&br#"{"uri":2}"#[..]));
        assert_eq!(params.member(Member::Uri), None);
        assert_eq!(params.text(Member::Name), Ok(Some("ab".into())));
        assert_eq!(params.required_text(Member::Name), Ok("ab".into()));
        assert!(params.text(Member::Arguments).is_err());
        assert_eq!(params.member(Member::Meta), None);
        assert_eq!(Params::default().as_bytes(), b"{}");
    }

    #[test]
    fn an_empty_list_is_no_arguments() {
        for json in [
            r#"{"name":"a","arguments":[]}"#,
            r#"{"name":"a","arguments":[  ],"_meta":[]}"#,
            r#"{"name":"a","arguments":null,"_meta":null}"#,
        ] {
            let params = params(json);
            assert_eq!(params.member(Member::Arguments), None, "{json}");
            assert_eq!(params.member(Member::Meta), None, "{json}");
        }

        let inner = params(r#"{"name":"call_tool","arguments":{"name":"a","arguments":[]}}"#);
        assert_eq!(inner.inner_call().expect("it has a name").member(Member::Arguments), None);

        // Others are wrong, and stay to be refused.
        for json in [r#"{"arguments":[0]}"#, r#"{"arguments":""}"#, r#"{"arguments":false}"#] {
            assert!(params(json).member(Member::Arguments).is_some(), "{json}");
        }
        assert!(params(r#"{"name":[]}"#).member(Member::Name).is_some());
    }

    #[test]
    fn a_call_within_a_call_is_found_without_a_copy() {
        let inner = |json| params(json).inner_call();
        let call = inner(
            r#"{"_meta":{"a":1},"name":"call_tool","arguments":{"arguments":{"b":[2]},"name":"x"}}"#,
        )
        .expect("it has a name");

        assert_eq!(call.required_text(Member::Name), Ok("x".into()));
        assert_eq!(call.member(Member::Arguments), Some(&br#"{"b":[2]}"#[..]));
        assert_eq!(call.argument("b"), Some(&b"[2]"[..]));
        assert_eq!(call.member(Member::Meta), Some(&br#"{"a":1}"#[..]));

        let bare = inner(r#"{"name":"c","arguments":{"name":"x","arguments":null}}"#);
        assert_eq!(bare.expect("it has a name").member(Member::Arguments), None);

        for json in [
            r#"{"name":"c"}"#,
            r#"{"name":"c","arguments":{}}"#,
            r#"{"name":"c","arguments":["name"]}"#,
            r#"{"name":"c","arguments":{"name":"x","name":"y"}}"#,
        ] {
            assert!(inner(json).is_none(), "{json}");
        }
    }

    #[test]
    fn a_call_can_have_another_name() {
        let call = params(r#"{"arguments":{"name":"a"},"name":"a\u0062","_meta":{}}"#);
        let renamed = call.with_name("x\"__y").expect("it has a name");

        assert_eq!(renamed.required_text(Member::Name), Ok("x\"__y".into()));
        assert_eq!(renamed.member(Member::Arguments), Some(&br#"{"name":"a"}"#[..]));
        assert_eq!(renamed.member(Member::Meta), Some(&b"{}"[..]));
        assert!(params("{}").with_name("x").is_none());
    }

    #[test]
    fn faults_name_the_member() {
        let text = |fault: Fault| fault.to_string();
        let numbered = params(r#"{"name":7}"#);
        let fault = numbered.required::<String>(Member::Name).map_err(text);
        assert!(fault.as_ref().is_err_and(|text| text.contains("name: ")), "{fault:?}");

        let fault = numbered.required::<String>(Member::Uri).map_err(text);
        assert!(fault.as_ref().is_err_and(|text| text.contains("\"uri\"")), "{fault:?}");

        for twice in [&br#"{"name":"a","name":"b"}"#[..], br#"{"name":null,"na\u006de":"b"}"#] {
            let twice = Params::new(Bytes::from_static(twice));
            assert!(matches!(twice, Err(Fault::InvalidParams { .. })));
        }
    }
}
