//! The sort of what a function returns.

use super::types::{Affinity, Literal, Typed, ValueSort};

const NUMBERS: &str = " abs avg ceil ceiling changes count cume_dist dense_rank exp floor instr julianday length \
    ln log log10 log2 median mod ntile number octet_length percent_rank percentile pow power \
    random rank regexp round row_number sign sqrt stddev stddev_pop stddev_samp sum total trunc try_number \
    unicode unixepoch var_pop var_samp variance json_array_length json_valid json_error_position glob like ";
const TEXTS: &str = " char concat concat_ws current_date current_time current_timestamp date datetime format \
    group_concat hex json json_array json_group_array json_group_object json_object json_type lower ltrim \
    printf quote regexp_extract regexp_replace replace rtrim soundex sqlite_version strftime string_agg \
    strptime substr substring time timediff trim try_strptime typeof unistr upper ";
/// Functions that return one of their arguments.
const ARGUMENTS: &str = " coalesce first_value greatest iif if ifnull lag last_value lead least max min nth_value nullif ";

/// The type of a call.
pub(super) fn result(name: &str, arguments: &[Typed]) -> Typed {
    let is_in = |list: &str| list.contains(&format!(" {name} "));

    if is_in(NUMBERS) {
        return Typed::of(ValueSort::Number);
    }
    if is_in(TEXTS) {
        let has_digits = name == "strftime" && arguments.first().is_some_and(is_format_of_digits);
        return Typed { has_digits, ..Typed::of(ValueSort::Text) };
    }
    if !is_in(ARGUMENTS) {
        return Typed::unknown();
    }

    let of = |arguments: &[Typed]| {
        let mut all = arguments.iter().cloned();
        let first = all.next().unwrap_or_else(Typed::unknown);
        all.fold(first, Typed::or).with_affinity(Affinity::None)
    };
    match (name, arguments) {
        ("iif" | "if", [_, results @ ..]) => of(results),
        ("first_value" | "last_value" | "nth_value" | "nullif", [first, ..]) => {
            of(std::slice::from_ref(first))
        }
        ("lag" | "lead", [first, _, default]) => of(&[first.clone(), default.clone()]),
        ("lag" | "lead", [first, ..]) => of(std::slice::from_ref(first)),
        _ => of(arguments),
    }
}

/// Whether `strftime` with this format returns a number.
fn is_format_of_digits(format: &Typed) -> bool {
    let Some(Literal::Text(format)) = &format.literal else { return false };
    let mut parts = format.split('%');
    parts.next() == Some("")
        && parts.clone().count() > 0
        && parts.all(|part| {
            matches!(
                part,
                "Y" | "m" | "d" | "H" | "M" | "S" | "s" | "j" | "J" | "f" | "w" | "W" | "u" | "U"
            )
        })
}

/// The type of a CAST.
pub(super) fn cast(kind: &str) -> Typed {
    let kind = kind.to_ascii_uppercase();
    let has = |names: &[&str]| names.iter().any(|name| kind.contains(name));

    let is_integer = has(&["INT"]);
    if !is_integer && has(&["CHAR", "CLOB", "TEXT"]) {
        return Typed { affinity: Affinity::Unknown, ..Typed::of(ValueSort::Text) };
    }
    if !is_integer && (has(&["BLOB"]) || kind.is_empty()) {
        return Typed::unknown();
    }
    Typed { affinity: Affinity::Numeric, ..Typed::of(ValueSort::Number) }
}
