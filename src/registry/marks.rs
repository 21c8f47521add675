//! What hosts show or weigh beside names: icons and annotations
//! (2025-11-25 and later, basic: Icons; resources: Annotations).

use chrono::DateTime;
use iri_string::types::UriStr;
use rmcp::model::{Annotations, Icon};

/// Finds icons that no host could show.
pub(super) fn check_icons(item: &str, icons: &[Icon], faults: &mut Vec<String>) {
    for icon in icons {
        let shown: String = icon.src.chars().take(80).collect();
        if UriStr::new(&icon.src).is_err() {
            faults.push(format!("{item}: the icon {shown:?} is at no URI"));
        } else if !["https:", "http:", "data:"].iter().any(|s| icon.src.starts_with(s)) {
            faults.push(format!("{item}: the icon {shown:?} is at no https:, http: or data: URI"));
        }
        for size in icon.sizes.iter().flatten().filter(|size| !is_size(size)) {
            faults.push(format!("{item}: an icon's size is like 48x48, or any; not {size:?}"));
        }
    }
}

fn is_size(size: &str) -> bool {
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    size == "any" || size.split_once('x').is_some_and(|(w, h)| is_number(w) && is_number(h))
}

/// Finds annotations that the protocol does not have.
pub(super) fn check_annotations(
    item: &str,
    annotations: Option<&Annotations>,
    faults: &mut Vec<String>,
) {
    let Some(annotations) = annotations else { return };
    if annotations.priority.is_some_and(|p| !(0.0..=1.0).contains(&p)) {
        faults.push(format!("{item}: a priority lies between 0 and 1"));
    }
    if let Some(time) = &annotations.last_modified
        && DateTime::parse_from_rfc3339(time).is_err()
    {
        faults.push(format!(
            "{item}: lastModified is a time like 2026-01-01T00:00:00Z, not {time:?}"
        ));
    }
}
