//! Media types without their parameters (RFC 9110, 8.3.1).

/// The media type without its parameters, in lower case.
#[must_use]
pub fn essence(mime_type: &str) -> String {
    mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether an [`essence`] is of JSON with a value on each line.
#[must_use]
pub fn is_json_lines(essence: &str) -> bool {
    matches!(essence, "application/x-ndjson" | "application/jsonl" | "application/json-lines")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_and_case_make_no_other_type() {
        assert_eq!(essence("Text/CSV ; charset=utf-8"), "text/csv");
        assert_eq!(essence(""), "");
        assert!(is_json_lines(&essence("application/X-NDJSON; a=b")));
        assert!(!is_json_lines("application/json"));
    }
}
