//! `${NAME}` in settings: variables of Larder's environment.

/// Replaces each `${NAME}`. The error is the name of a variable that is not set.
pub(super) fn expand(
    value: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = value;

    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        expanded += before;
        expanded += &variable(name).ok_or_else(|| name.to_owned())?;
        rest = after;
    }

    Ok(expanded + rest)
}

/// The names of the variables that `${NAME}` fills in.
pub(super) fn named_in(value: &str) -> impl Iterator<Item = &str> {
    value.split("${").skip(1).filter_map(|rest| Some(rest.split_once('}')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_that_are_filled_in_are_known() {
        for (value, names) in [
            ("x", &[][..]),
            ("${A}", &["A"]),
            ("Bearer ${A}.${B}", &["A", "B"]),
            ("$A ${A", &[]),
            ("${${A}}", &["A"]),
        ] {
            let found: Vec<_> = named_in(value).collect();
            assert_eq!(found, names, "{value}");
        }
    }

    #[test]
    fn variables_are_filled_in() {
        let variable = |name: &str| (name == "A").then(|| "${B}".to_owned());
        for (value, expanded) in [
            ("x", Ok("x".to_owned())),
            ("${A}", Ok("${B}".to_owned())),
            ("Bearer ${A}.", Ok("Bearer ${B}.".to_owned())),
            ("${C}", Err("C".to_owned())),
            ("$A ${A", Ok("$A ${A".to_owned())),
        ] {
            assert_eq!(expand(value, variable), expanded, "{value}");
        }
    }
}
