//! A message's parameters: a slice of the body that they came in.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;

use super::{Fault, members};

/// The `params` member. Nothing of it is copied; the members that several
/// floors look at are found in one pass, and parsed by who needs them.
#[derive(Debug, Clone, Default)]
pub struct Params {
    /// Empty when the member is absent.
    raw: Bytes,
    found: [Place; Member::COUNT],
}

/// A member that more than one floor looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Member {
    /// `_meta`
    Meta,
    /// `name`: of a tool or prompt
    Name,
    /// `uri`: of a resource
    Uri,
    /// `taskId`
    TaskId,
    /// `arguments`
    Arguments,
    /// `inputResponses`
    InputResponses,
    /// `requestState`
    RequestState,
    /// `ref`: what is completed
    Ref,
}

/// Where a member's value lies; nowhere if its length is 0. Offsets of 32 bits,
/// because parameters are passed on by value.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    begin: u32,
    end: u32,
}

impl Member {
    const COUNT: usize = 8;
    /// In the order in which they are declared.
    const NAMES: [&str; Self::COUNT] =
        ["_meta", "name", "uri", "taskId", "arguments", "inputResponses", "requestState", "ref"];

    /// As it is called in the parameters.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl Params {
    /// Accepts an object apart that is known to be JSON.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] when one of the members is there twice;
    /// [`Fault::InvalidRequest`] for four gigabytes and more.
    pub(super) fn new(raw: Bytes) -> Result<Self, Fault> {
        if u32::try_from(raw.len()).is_err() {
            return Err(Fault::InvalidRequest("The parameters are too long.".into()));
        }
        let found = members::find(&raw, &Member::NAMES).map_err(twice)?;
        let found = found.map(|value| match value {
            Some((begin, end)) if &raw[begin..end] != b"null" => {
                // Both are within what has fewer than 2^32 bytes.
                let place = |offset| u32::try_from(offset).unwrap_or(0);
                Place { begin: place(begin), end: place(end) }
            }
            _ => Place::default(),
        });
        Ok(Self { raw, found })
    }

    /// Parses all of them into a struct; absent ones count as an empty object.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that says which member is wrong.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Fault> {
        serde_json::from_slice(self.as_bytes()).map_err(|e| Fault::invalid_params(describe(&e)))
    }

    /// The JSON of one member; nothing where it is absent or null.
    pub fn member(&self, member: Member) -> Option<&[u8]> {
        let Place { begin, end } = self.found[member as usize];
        (begin < end).then(|| &self.raw[begin as usize..end as usize])
    }

    /// Parses one member; nothing where it is absent or null.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the member.
    pub fn read<'a, T: Deserialize<'a>>(&'a self, member: Member) -> Result<Option<T>, Fault> {
        let Some(raw) = self.member(member) else { return Ok(None) };
        serde_json::from_slice(raw).map(Some).map_err(|error| {
            Fault::invalid_params(format!("{}: {}", member.name(), describe(&error)))
        })
    }

    /// A member that is text, without a copy unless something in it is escaped;
    /// nothing where it is absent or null.
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

    /// Parses one member that has to be there.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the member.
    pub fn required<'a, T: Deserialize<'a>>(&'a self, member: Member) -> Result<T, Fault> {
        self.read(member)?.ok_or_else(|| missing(member))
    }

    /// A member that is text and has to be there.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the member.
    pub fn required_text(&self, member: Member) -> Result<Cow<'_, str>, Fault> {
        self.text(member)?.ok_or_else(|| missing(member))
    }

    /// The raw JSON, `{}` when absent.
    pub fn as_bytes(&self) -> &[u8] {
        if self.raw.is_empty() { b"{}" } else { &self.raw }
    }
}

pub(super) fn twice(name: &str) -> Fault {
    Fault::invalid_params(format!("The member {name:?} is there twice."))
}

fn missing(member: Member) -> Fault {
    Fault::invalid_params(format!("The member {:?} is missing.", member.name()))
}

/// Says what `serde_json` found without its position, which counts from the
/// start of a part that the caller cannot see.
pub(super) fn describe(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: &'static str) -> Params {
        Params::new(Bytes::from_static(json.as_bytes())).expect("it is an object")
    }

    #[test]
    fn members_are_found_where_they_lie() {
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
    fn what_is_wrong_names_the_member() {
        let said = |fault: Fault| fault.to_string();
        let numbered = params(r#"{"name":7}"#);
        let fault = numbered.required::<String>(Member::Name).map_err(said);
        assert!(fault.as_ref().is_err_and(|said| said.contains("name: ")), "{fault:?}");
        let fault = numbered.required::<String>(Member::Uri).map_err(said);
        assert!(fault.as_ref().is_err_and(|said| said.contains("\"uri\"")), "{fault:?}");
        for twice in [&br#"{"name":"a","name":"b"}"#[..], br#"{"name":null,"na\u006de":"b"}"#] {
            let twice = Params::new(Bytes::from_static(twice));
            assert!(matches!(twice, Err(Fault::InvalidParams { .. })));
        }
    }
}
