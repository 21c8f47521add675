//! Validation of icons and annotations (2025-11-25 and later, basic: Icons;
//! resources: Annotations).

use chrono::DateTime;
use iri_string::types::UriStr;
use rmcp::model::{Annotations, Icon};

/// Reports icons that no host can show.
pub(super) fn check_icons(item: &str, icons: &[Icon], problems: &mut Vec<String>) {
    for icon in icons {
        let src: String = icon.src.chars().take(80).collect();
        if UriStr::new(&icon.src).is_err() {
            problems.push(format!("{item}: the icon's src {src:?} is not a URI"));
        } else if !["https:", "http:", "data:"].iter().any(|s| icon.src.starts_with(s)) {
            problems.push(format!(
                "{item}: the icon's src {src:?} must begin with https:, http: or data:"
            ));
        }

        for size in icon.sizes.iter().flatten().filter(|size| !is_size(size)) {
            problems
                .push(format!("{item}: an icon's size must be like 48x48, or any, not {size:?}"));
        }
    }
}

fn is_size(size: &str) -> bool {
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    size == "any" || size.split_once('x').is_some_and(|(w, h)| is_number(w) && is_number(h))
}

/// Reports annotations that the protocol does not allow.
pub(super) fn check_annotations(
    item: &str,
    annotations: Option<&Annotations>,
    problems: &mut Vec<String>,
) {
    let Some(annotations) = annotations else { return };
    if annotations.priority.is_some_and(|p| !(0.0..=1.0).contains(&p)) {
        problems.push(format!("{item}: the priority must be between 0 and 1"));
    }

    if let Some(time) = &annotations.last_modified
        && DateTime::parse_from_rfc3339(time).is_err()
    {
        problems.push(format!(
            "{item}: lastModified must be a time like 2026-01-01T00:00:00Z, not {time:?}"
        ));
    }
}
