//! The weight of an entry in a list of preferences (RFC 9110, section 12.4.2).

use std::num::ParseFloatError;

/// The weight among the parameters of an entry, which are separated by semicolons; `None` without
/// one.
pub(super) fn weight(parameters: &str) -> Option<Result<f32, ParseFloatError>> {
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_is_found_among_other_parameters() {
        let read = |text: &str| weight(text).map(Result::ok);
        assert_eq!(read("charset=utf-8; Q = 0.5 "), Some(Some(0.5)));
        assert_eq!(read("q=0.000"), Some(Some(0.0)));
        assert_eq!(read("q=x"), Some(None));
        for without in ["", "charset=utf-8", "q", "quality=0"] {
            assert_eq!(read(without), None, "{without}");
        }
    }
}
