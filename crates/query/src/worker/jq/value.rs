//! [`JqValue`]: a JSON value with the operations of jq. Those of jaq's own values differ: a path does
//! not make objects of null, a list does not grow, and numbers are divided by zero.

use std::{cmp::Ordering, fmt, ops};

use bytes::Bytes;
use jaq_core::{
    Exn, ValR, ValT, ValX,
    box_iter::{BoxIter, box_once},
    path::Opt,
    val::Range,
};
use jaq_json::{Map, Num, Rc, Val};

use super::write::write_value;

/// A JSON value.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JqValue(pub(super) Val);

pub(super) type Error = jaq_core::Error<JqValue>;

/// The largest index that a list can be given.
const MAX_INDEX: usize = 536_870_911;

impl JqValue {
    /// The value's JSON.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut json = Vec::new();
        write_value(&mut json, &self.0);
        json
    }

    pub(super) fn text(text: impl Into<Bytes>) -> Self {
        Self(Val::utf8_str(text))
    }

    pub(super) fn number(number: f64) -> Self {
        Self(Val::Num(Num::Float(number)))
    }

    /// A list without its reference count, if it has no other owner.
    fn items(list: Rc<Vec<Val>>) -> Vec<Val> {
        Rc::try_unwrap(list).unwrap_or_else(|list| (*list).clone())
    }

    fn members(object: Rc<Map>) -> Map {
        Rc::try_unwrap(object).unwrap_or_else(|object| (*object).clone())
    }

    /// The bounds of a slice of so many items: the start rounded down, the end rounded up.
    pub(super) fn bounds(range: &Range<&Self>, len: usize) -> Result<ops::Range<usize>, Error> {
        let bound = |bound: Option<&Self>| match bound.map(|bound| &bound.0) {
            None | Some(Val::Null) => Ok(None),
            Some(Val::Num(_)) => Ok(bound.and_then(jaq_std::ValT::as_f64)),
            Some(_) => Err(Error::str("start and end indices of a slice must be numbers")),
        };

        #[allow(clippy::cast_precision_loss, reason = "jq's numbers are doubles")]
        let length = len as f64;
        let absolute = |bound: f64| if bound < 0.0 { (bound + length).max(0.0) } else { bound };
        let start = bound(range.start)?.map_or(0.0, absolute).min(length).floor();
        let end = bound(range.end)?.map_or(length, absolute).min(length).ceil();

        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0..len")]
        let whole = |bound: f64| bound as usize;
        Ok(whole(start)..whole(end.max(start)))
    }

    /// The slice of an object with the members `start` and `end`.
    pub(super) fn slice_of(object: &Map) -> Range<Self> {
        let bound = |name: &'static str| object.get(&Val::utf8_str(name)).cloned().map(Self);
        bound("start")..bound("end")
    }

    /// The index of an item, counted from the end if it is negative; `None` if it is before the first
    /// item, or no number.
    pub(super) fn position(index: &Num, len: usize) -> Option<usize> {
        if let Num::Int(index) = index {
            let from_end = || len.checked_sub(index.unsigned_abs());
            return usize::try_from(*index).ok().or_else(from_end);
        }

        let index = jaq_std::ValT::as_f64(&Self(Val::Num(index.clone())))?.floor();
        #[allow(clippy::cast_precision_loss, reason = "jq's numbers are doubles")]
        let index = if index < 0.0 { index + len as f64 } else { index };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
        (index >= 0.0).then_some(index as usize)
    }

    /// The places of a part: of a text in bytes, of items in a list.
    pub(super) fn indices(&self, part: &Self) -> ValR<Self> {
        let places: Vec<usize> = match (&self.0, &part.0) {
            (Val::Null, Val::Null | Val::TStr(_) | Val::Num(_)) => return Ok(Self::default()),
            (Val::Obj(members), key @ Val::TStr(_)) => {
                return Ok(Self(members.get(key).cloned().unwrap_or_default()));
            }
            (Val::TStr(_), Val::TStr(part)) if part.is_empty() => Vec::new(),
            (Val::TStr(text), Val::TStr(part)) => {
                let starts = text.windows(part.len()).enumerate();
                starts.filter(|(_, window)| *window == &part[..]).map(|(at, _)| at).collect()
            }
            (Val::Arr(_), Val::Arr(part)) if part.is_empty() => Vec::new(),
            (Val::Arr(items), Val::Arr(part)) => {
                let starts = items.windows(part.len()).enumerate();
                starts.filter(|(_, window)| *window == &part[..]).map(|(at, _)| at).collect()
            }
            (Val::Arr(items), part) => {
                let all = items.iter().enumerate();
                all.filter(|(_, item)| *item == part).map(|(at, _)| at).collect()
            }
            _ => return Err(Error::index(self.clone(), part.clone())),
        };
        Ok(places.into_iter().map(Self::from).collect())
    }

    /// Whether a place must get a value that is an object, or a list, if it is null.
    fn or_container(self, index: &Self) -> Self {
        match (&self.0, &index.0) {
            (Val::Null, Val::TStr(_)) => Self(Val::obj(Map::default())),
            (Val::Null, Val::Num(_)) => Self(Val::Arr(Rc::default())),
            _ => self,
        }
    }
}

impl fmt::Display for JqValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.to_json()))
    }
}

macro_rules! from {
    ($($type:ty),*) => {$(
        impl From<$type> for JqValue {
            fn from(value: $type) -> Self {
                Self(value.into())
            }
        }
    )*};
}
from!(bool, isize, usize, f64, String);

impl From<Range<Self>> for JqValue {
    fn from(range: Range<Self>) -> Self {
        let bound = |bound: Option<Self>| bound.unwrap_or_default().0;
        let members = [("start", bound(range.start)), ("end", bound(range.end))];
        Self(Val::obj(members.into_iter().map(|(k, v)| (Val::utf8_str(k), v)).collect()))
    }
}

impl FromIterator<Self> for JqValue {
    fn from_iter<I: IntoIterator<Item = Self>>(items: I) -> Self {
        Self(Val::Arr(Rc::new(items.into_iter().map(|item| item.0).collect())))
    }
}

/// The result of jaq's operation on operands that it accepts.
pub(super) fn done(result: jaq_json::ValR) -> ValR<JqValue> {
    result.map(JqValue).map_err(Error::str)
}

const ITERABLE: &str = "iterable (array or object)";

impl ValT for JqValue {
    fn from_num(number: &str) -> ValR<Self> {
        done(Val::from_num(number))
    }

    fn from_map<I: IntoIterator<Item = (Self, Self)>>(members: I) -> ValR<Self> {
        let members = members.into_iter().map(|(key, value)| match key.0 {
            key @ Val::TStr(_) => Ok((key, value.0)),
            key => Err(Error::str(format_args!("object keys must be strings, not {}", Self(key)))),
        });
        Ok(Self(Val::obj(members.collect::<Result<_, _>>()?)))
    }

    fn key_values(self) -> BoxIter<'static, ValR<(Self, Self), Self>> {
        match self.0 {
            Val::Arr(items) => {
                let items = Self::items(items).into_iter().enumerate();
                Box::new(items.map(|(index, item)| Ok((Self::from(index), Self(item)))))
            }
            Val::Obj(members) => {
                let members = Self::members(members).into_iter();
                Box::new(members.map(|(key, value)| Ok((Self(key), Self(value)))))
            }
            other => box_once(Err(Error::typ(Self(other), ITERABLE))),
        }
    }

    fn values(self) -> Box<dyn Iterator<Item = ValR<Self>>> {
        match self.0 {
            Val::Arr(items) => Box::new(Self::items(items).into_iter().map(|item| Ok(Self(item)))),
            Val::Obj(members) => {
                Box::new(Self::members(members).into_iter().map(|(_, value)| Ok(Self(value))))
            }
            other => box_once(Err(Error::typ(Self(other), ITERABLE))),
        }
    }

    fn index(self, index: &Self) -> ValR<Self> {
        Ok(Self(match (self.0, &index.0) {
            (Val::Null, Val::Null | Val::TStr(_) | Val::Num(_) | Val::Obj(_)) => Val::Null,
            (Val::Obj(members), key @ Val::TStr(_)) => {
                members.get(key).cloned().unwrap_or_default()
            }
            (Val::Arr(items), Val::Num(index)) => {
                let at = Self::position(index, items.len());
                at.and_then(|at| items.get(at)).cloned().unwrap_or_default()
            }
            (list @ Val::Arr(_), Val::Arr(_)) => {
                return Self(list).indices(index);
            }
            (value @ (Val::Arr(_) | Val::TStr(_)), Val::Obj(slice)) => {
                let slice = Self::slice_of(slice);
                return Self(value).range(slice.start.as_ref()..slice.end.as_ref());
            }
            (value, _) => return Err(Error::index(Self(value), index.clone())),
        }))
    }

    fn range(self, range: Range<&Self>) -> ValR<Self> {
        Ok(Self(match self.0 {
            Val::Null => Val::Null,
            Val::Arr(items) => {
                let bounds = Self::bounds(&range, items.len())?;
                Val::Arr(Rc::new(items[bounds].to_vec()))
            }
            Val::TStr(text) => {
                let text = String::from_utf8_lossy(&text);
                let bounds = Self::bounds(&range, text.chars().count())?;
                let skip = bounds.start;
                let take = bounds.end - bounds.start;
                Val::utf8_str(text.chars().skip(skip).take(take).collect::<String>())
            }
            other => return Err(Error::typ(Self(other), "rangeable (array or string)")),
        }))
    }

    fn map_values<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        match self.0 {
            Val::Arr(items) => {
                let items = Self::items(items).into_iter();
                items.filter_map(|item| f(Self(item)).next()).collect()
            }
            Val::Obj(members) => {
                let members = Self::members(members).into_iter();
                let members = members
                    .filter_map(|(key, value)| Some(f(Self(value)).next()?.map(|v| (key, v.0))));
                Ok(Self(Val::obj(members.collect::<Result<_, Exn<'a, Self>>>()?)))
            }
            other => opt.fail(Self(other), |value| Exn::from(Error::typ(value, ITERABLE))),
        }
    }

    fn map_index<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        index: &Self,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        if let Val::Obj(slice) = &index.0 {
            let slice = Self::slice_of(slice);
            return self.map_range(slice.start.as_ref()..slice.end.as_ref(), opt, f);
        }

        match (self.or_container(index).0, &index.0) {
            (Val::Obj(mut members), key @ Val::TStr(_)) => {
                let known = Rc::make_mut(&mut members);
                let old = known.get_mut(key).map(std::mem::take).unwrap_or_default();
                match f(Self(old)).next().transpose()? {
                    Some(new) => drop(known.insert(key.clone(), new.0)),
                    None => drop(known.shift_remove(key)),
                }
                Ok(Self(Val::Obj(members)))
            }
            (Val::Arr(mut items), Val::Num(number)) => {
                let at = Self::position(number, items.len());
                let known = Rc::make_mut(&mut items);
                let old = at.and_then(|at| known.get_mut(at)).map(std::mem::take);

                match (f(Self(old.unwrap_or_default())).next().transpose()?, at) {
                    (Some(_), None) => {
                        return Err(Error::str("out of bounds negative array index").into());
                    }
                    (Some(_), Some(at)) if at > MAX_INDEX => {
                        return Err(Error::str("array index too large").into());
                    }
                    (Some(new), Some(at)) => {
                        if at >= known.len() {
                            known.resize(at + 1, Val::Null);
                        }
                        known[at] = new.0;
                    }
                    (None, Some(at)) if at < known.len() => drop(known.remove(at)),
                    (None, _) => {}
                }
                Ok(Self(Val::Arr(items)))
            }
            (other, _) => {
                opt.fail(Self(other), |value| Exn::from(Error::index(value, index.clone())))
            }
        }
    }

    fn map_range<'a, I: Iterator<Item = ValX<'a, Self>>>(
        self,
        range: Range<&Self>,
        opt: Opt,
        f: impl Fn(Self) -> I,
    ) -> ValX<'a, Self> {
        let (mut items, old) = match self.0 {
            Val::Null => (Rc::default(), Self::default()),
            Val::Arr(items) => {
                let slice = Self(Val::Arr(Rc::clone(&items))).range(range.clone());
                match slice {
                    Ok(slice) => (items, slice),
                    Err(error) => return opt.fail(Self(Val::Arr(items)), |_| Exn::from(error)),
                }
            }
            other => {
                return opt.fail(Self(other), |value| Exn::from(Error::typ(value, "array")));
            }
        };

        let bounds = Self::bounds(&range, items.len()).map_err(Exn::from)?;
        let new = match f(old).next().transpose()?.map(|new| new.0) {
            Some(Val::Arr(new)) => Self::items(new),
            Some(_) => {
                let problem = "a slice of an array can only be assigned another array";
                return Err(Error::str(problem).into());
            }
            None => Vec::new(),
        };
        Rc::make_mut(&mut items).splice(bounds, new);
        Ok(Self(Val::Arr(items)))
    }

    fn as_bool(&self) -> bool {
        !matches!(self.0, Val::Null | Val::Bool(false))
    }

    fn into_string(self) -> Self {
        match self.0 {
            text @ Val::TStr(_) => Self(text),
            other => Self::text(Self(other).to_json()),
        }
    }
}

impl jaq_std::ValT for JqValue {
    fn into_seq<S: FromIterator<Self>>(self) -> Result<S, Self> {
        match self.0 {
            Val::Arr(items) => Ok(Self::items(items).into_iter().map(Self).collect()),
            other => Err(Self(other)),
        }
    }

    fn is_int(&self) -> bool {
        jaq_std::ValT::is_int(&self.0)
    }

    fn as_isize(&self) -> Option<isize> {
        let whole = |number: f64| {
            #[allow(clippy::cast_possible_truncation, reason = "jq cuts off fractions")]
            (number.fract() == 0.0 && number.abs() < 1e18).then_some(number as isize)
        };
        self.0.as_isize().or_else(|| self.as_f64().and_then(whole))
    }

    fn as_f64(&self) -> Option<f64> {
        jaq_std::ValT::as_f64(&self.0)
    }

    fn is_utf8_str(&self) -> bool {
        self.0.is_utf8_str()
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.0.as_bytes()
    }

    fn as_sub_str(&self, sub: &[u8]) -> Self {
        Self(self.0.as_sub_str(sub))
    }

    fn from_utf8_bytes(bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self(Val::from_utf8_bytes(bytes))
    }
}

/// Compares as jq does, for sorted lists.
pub(super) fn compare(left: &Val, right: &Val) -> Ordering {
    left.cmp(right)
}
