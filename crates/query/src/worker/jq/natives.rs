//! The functions of jq that depend on the kind of value.

use jaq_core::{
    RunPtr, ValR,
    native::{Filter, Fun, bome, run, unary, v},
};
use jaq_json::{Num, Val};
use larder_records::words::cut;

use super::{
    Data,
    input::parse,
    number::parse_number,
    value::{Error, JqValue, compare},
};

/// The functions.
pub(super) fn funs() -> impl Iterator<Item = Fun<Data>> {
    let funs: Vec<Filter<RunPtr<Data>>> = vec![
        ("fromjson", v(0), |cv| bome(from_json(&cv.1))),
        ("tonumber", v(0), |cv| bome(to_number(cv.1))),
        ("tojson", v(0), |cv| bome(Ok(JqValue::text(cv.1.to_json())))),
        ("length", v(0), |cv| bome(length(&cv.1))),
        ("contains", v(1), |cv| {
            unary(cv, |value, part| contains(&value.0, &part.0).map(Into::into))
        }),
        ("has", v(1), |cv| unary(cv, |value, key| has(&value, &key))),
        ("indices", v(1), |cv| unary(cv, |value, part| value.indices(&part))),
        ("bsearch", v(1), |cv| unary(cv, |value, wanted| search(&value, &wanted))),
        ("floor", v(0), |cv| bome(rounded(cv.1, f64::floor))),
        ("ceil", v(0), |cv| bome(rounded(cv.1, f64::ceil))),
        ("round", v(0), |cv| bome(rounded(cv.1, f64::round))),
        ("nearbyint", v(0), |cv| bome(rounded(cv.1, f64::round_ties_even))),
        ("from_base64", v(0), |cv| bome(from_base64(&cv.1))),
        ("to_base32", v(0), |cv| bome(to_base32(&cv.1))),
        ("from_base32", v(0), |cv| bome(from_base32(&cv.1))),
        ("exp", v(0), |cv| bome(computed(cv.1, f64::exp))),
        ("exp2", v(0), |cv| bome(computed(cv.1, f64::exp2))),
        ("log", v(0), |cv| bome(computed(cv.1, f64::ln))),
        ("log2", v(0), |cv| bome(computed(cv.1, f64::log2))),
        ("log10", v(0), |cv| bome(computed(cv.1, f64::log10))),
        ("nan", v(0), |_| bome(Ok(f64::NAN.into()))),
        ("infinite", v(0), |_| bome(Ok(f64::INFINITY.into()))),
    ];
    funs.into_iter().map(run::<Data>)
}

fn as_text(value: &JqValue) -> Option<std::borrow::Cow<'_, str>> {
    match &value.0 {
        Val::TStr(text) => Some(String::from_utf8_lossy(text)),
        _ => None,
    }
}

fn rounded(value: JqValue, round: fn(f64) -> f64) -> ValR<JqValue> {
    match &value.0 {
        Val::Num(Num::Int(_) | Num::BigInt(_)) => Ok(value),
        Val::Num(_) => Ok(round(jaq_std::ValT::as_f64(&value).unwrap_or(f64::NAN)).into()),
        _ => Err(Error::typ(value, "number")),
    }
}

/// A function of numbers by the system's library, whose last digits are those of jq.
fn computed(value: JqValue, function: fn(f64) -> f64) -> ValR<JqValue> {
    match &value.0 {
        Val::Num(_) => Ok(function(jaq_std::ValT::as_f64(&value).unwrap_or(f64::NAN)).into()),
        _ => Err(Error::typ(value, "number")),
    }
}

/// Base64, with or without padding.
fn from_base64(value: &JqValue) -> ValR<JqValue> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let Some(text) = as_text(value) else { return Err(Error::typ(value.clone(), "string")) };
    let invalid = || Error::str(format_args!("{} is not valid base64 data", cut(&text, 100)));

    let mut bits = 0_u32;
    let mut count = 0_u32;
    let mut bytes = Vec::new();
    for character in text.bytes().take_while(|byte| *byte != b'=') {
        let code = ALPHABET.iter().position(|known| *known == character).ok_or_else(invalid)?;
        bits = bits << 6 | u32::try_from(code).unwrap_or_default();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xFF) as u8);
        }
    }

    // A single character at the end has not the bits of a byte.
    if count == 6 {
        return Err(invalid());
    }
    Ok(JqValue::text(replaced_utf8(&bytes)))
}

/// The text of bytes, as jq reads it: a sequence that is cut or invalid is one character U+FFFD, with
/// the bytes that its first byte announces at the end of the text.
fn replaced_utf8(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;

    while let Some(first) = rest.first() {
        let announced = match first {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => 1,
        };
        let follows = |byte: &&u8| matches!(byte, 0x80..=0xBF);
        let taken = match rest.get(1..announced) {
            None => rest.len(),
            Some(next) => 1 + next.iter().take_while(follows).count(),
        };

        let (sequence, after) = rest.split_at(taken);
        text.push_str(std::str::from_utf8(sequence).unwrap_or("\u{FFFD}"));
        rest = after;
    }
    text
}

fn from_base32(value: &JqValue) -> ValR<JqValue> {
    let Some(text) = as_text(value) else { return Err(Error::typ(value.clone(), "string")) };
    let invalid = || Error::str(format_args!("{} is not valid base32 data", cut(&text, 100)));

    let mut bits = 0_u32;
    let mut count = 0_u32;
    let mut bytes = Vec::new();
    for character in text.bytes().take_while(|byte| *byte != b'=') {
        let code = match character {
            b'A'..=b'Z' => character - b'A',
            b'2'..=b'7' => character - b'2' + 26,
            _ => return Err(invalid()),
        };
        bits = (bits << 5 | u32::from(code)) & 0xFFFF;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xFF) as u8);
        }
    }
    Ok(JqValue::text(replaced_utf8(&bytes)))
}

fn to_base32(value: &JqValue) -> ValR<JqValue> {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let Some(text) = as_text(value) else { return Err(Error::typ(value.clone(), "string")) };

    let mut encoded = String::new();
    for chunk in text.as_bytes().chunks(5) {
        let bits = (0..5)
            .fold(0_u64, |bits, at| bits << 8 | u64::from(chunk.get(at).copied().unwrap_or(0)));
        let digits = (chunk.len() * 8).div_ceil(5);
        for digit in 0..8 {
            let code = usize::try_from(bits >> (35 - 5 * digit) & 31).unwrap_or_default();
            encoded.push(if digit < digits { char::from(ALPHABET[code]) } else { '=' });
        }
    }
    Ok(JqValue::text(encoded))
}

/// One JSON value; text after it is an error.
fn from_json(value: &JqValue) -> ValR<JqValue> {
    let Some(text) = as_text(value) else { return Err(Error::typ(value.clone(), "string")) };
    if let Some(number) = parse_number(&text) {
        return Ok(JqValue(Val::Num(number)));
    }

    let invalid = || Error::str(format_args!("{} cannot be parsed as JSON", cut(&text, 100)));
    parse(text.as_bytes()).map(JqValue).ok_or_else(invalid)
}

fn to_number(value: JqValue) -> ValR<JqValue> {
    if let Val::Num(_) = value.0 {
        return Ok(value);
    }

    let Some(text) = as_text(&value) else { return Err(Error::typ(value, "number")) };
    let invalid = || Error::str(format_args!("{:?} cannot be parsed as a number", cut(&text, 100)));
    parse_number(&text).map(|number| JqValue(Val::Num(number))).ok_or_else(invalid)
}

fn length(value: &JqValue) -> ValR<JqValue> {
    Ok(match &value.0 {
        Val::Null => 0_usize.into(),
        Val::Num(Num::Int(number)) => number.unsigned_abs().into(),
        Val::Num(_) => jaq_std::ValT::as_f64(value).unwrap_or_default().abs().into(),
        Val::Arr(items) => items.len().into(),
        Val::Obj(members) => members.len().into(),
        Val::TStr(text) => String::from_utf8_lossy(text).chars().count().into(),
        Val::Bool(_) | Val::BStr(_) => {
            return Err(Error::str(format_args!("{value} has no length")));
        }
    })
}

/// Whether `part` is in the value: a text in a text; each item in an item; each member in the member
/// of that name; anything else if it is equal.
fn contains(value: &Val, part: &Val) -> Result<bool, Error> {
    match (value, part) {
        (Val::Obj(all), Val::Obj(some)) => {
            for (key, part) in some.iter() {
                match all.get(key) {
                    Some(value) if contains(value, part)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Val::Arr(all), Val::Arr(some)) => {
            for part in some.iter() {
                // An item of another kind is another item.
                if !all.iter().any(|value| contains(value, part).unwrap_or(false)) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Val::TStr(text), Val::TStr(part)) => {
            let text = String::from_utf8_lossy(text);
            let part = String::from_utf8_lossy(part);
            Ok(text.contains(&*part))
        }
        (Val::Null, Val::Null) | (Val::Num(_), Val::Num(_)) | (Val::Bool(_), Val::Bool(_)) => {
            Ok(value == part)
        }
        _ => Err(Error::str(format_args!(
            "{} and {} cannot have their containment checked",
            JqValue(value.clone()),
            JqValue(part.clone())
        ))),
    }
}

fn has(value: &JqValue, key: &JqValue) -> ValR<JqValue> {
    match (&value.0, &key.0) {
        (Val::Null, Val::TStr(_) | Val::Num(_)) => Ok(false.into()),
        (Val::Obj(members), key @ Val::TStr(_)) => Ok(members.contains_key(key).into()),
        (Val::Arr(items), Val::Num(_)) => {
            let index = jaq_std::ValT::as_f64(key).unwrap_or(f64::NAN);
            #[allow(clippy::cast_precision_loss, reason = "jq's numbers are doubles")]
            let has = index >= 0.0 && index < items.len() as f64;
            Ok(has.into())
        }
        _ => Err(Error::str(format_args!("cannot check whether {value} has the key {key}"))),
    }
}

fn search(value: &JqValue, wanted: &JqValue) -> ValR<JqValue> {
    let Val::Arr(items) = &value.0 else { return Err(Error::typ(value.clone(), "array")) };
    let found = items.binary_search_by(|item| compare(item, &wanted.0));
    Ok(match found {
        Ok(at) => at.into(),
        Err(at) => isize::try_from(at).map_or(-1, |at| -1 - at).into(),
    })
}
