//! A message's parameters: a slice of the body that they came in.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Fault;

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

    /// As it is called in the parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "_meta",
            Self::Name => "name",
            Self::Uri => "uri",
            Self::TaskId => "taskId",
            Self::Arguments => "arguments",
            Self::InputResponses => "inputResponses",
            Self::RequestState => "requestState",
            Self::Ref => "ref",
        }
    }
}

impl Params {
    /// Takes the JSON of an object apart.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] when one of its members is there twice;
    /// [`Fault::InvalidRequest`] for four gigabytes and more.
    pub(super) fn new(raw: Bytes) -> Result<Self, Fault> {
        #[derive(Deserialize)]
        struct Members<'a> {
            #[serde(rename = "_meta", default, borrow)]
            meta: Option<&'a RawValue>,
            #[serde(default, borrow)]
            name: Option<&'a RawValue>,
            #[serde(default, borrow)]
            uri: Option<&'a RawValue>,
            #[serde(rename = "taskId", default, borrow)]
            task_id: Option<&'a RawValue>,
            #[serde(default, borrow)]
            arguments: Option<&'a RawValue>,
            #[serde(rename = "inputResponses", default, borrow)]
            input_responses: Option<&'a RawValue>,
            #[serde(rename = "requestState", default, borrow)]
            request_state: Option<&'a RawValue>,
            #[serde(default, borrow)]
            r#ref: Option<&'a RawValue>,
        }
        if u32::try_from(raw.len()).is_err() {
            return Err(Fault::InvalidRequest("The parameters are too long.".into()));
        }
        let members: Members<'_> =
            serde_json::from_slice(&raw).map_err(|e| Fault::invalid_params(describe(&e)))?;
        let begin = raw.as_ptr() as usize;
        let found = [
            members.meta,
            members.name,
            members.uri,
            members.task_id,
            members.arguments,
            members.input_responses,
            members.request_state,
            members.r#ref,
        ];
        let found = found.map(|value| {
            let value = value.map_or("", RawValue::get);
            let at = (value.as_ptr() as usize).saturating_sub(begin);
            // Both are within what has fewer than 2^32 bytes; what is not there has none.
            let place = |offset| u32::try_from(offset).unwrap_or(0);
            match value.len() {
                0 => Place::default(),
                length => Place { begin: place(at), end: place(at + length) },
            }
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

    /// Parses one member that has to be there.
    ///
    /// # Errors
    /// [`Fault::InvalidParams`] that names the member.
    pub fn required<'a, T: Deserialize<'a>>(&'a self, member: Member) -> Result<T, Fault> {
        self.read(member)?.ok_or_else(|| {
            Fault::invalid_params(format!("The member {:?} is missing.", member.name()))
        })
    }

    /// The raw JSON, `{}` when absent.
    pub fn as_bytes(&self) -> &[u8] {
        if self.raw.is_empty() { b"{}" } else { &self.raw }
    }
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
        let twice = Params::new(Bytes::from_static(br#"{"name":"a","name":"b"}"#));
        assert!(matches!(twice, Err(Fault::InvalidParams { .. })));
    }
}
