//! The page of a link to upload: a file picker, progress and errors.

use std::sync::LazyLock;

use axum::response::Response;
use larder_records::words::number;

use crate::{
    content_link::Upload,
    http::pages::{Script, escape, scripted_page},
};

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("upload.js")));

/// The page, for content of `max` bytes at most.
pub(super) fn page(link: &Upload, max: u64) -> Response {
    let file = match (&link.name, link.size) {
        (None, None) => "a file".to_owned(),
        (None, Some(size)) => format!("a file of {} bytes", number(size)),
        (Some(name), None) => format!("<strong>{}</strong>", escape(name)),
        (Some(name), Some(size)) => {
            format!("<strong>{}</strong>, {} bytes", escape(name), number(size))
        }
    };

    let size = link.size.map_or_else(String::new, |size| format!(" data-size=\"{size}\""));
    let named = if link.name.is_some() { " data-named" } else { "" };
    let expires = link.expires;

    let body = format!(
        "<p>Send {file}. The link works once, until {expires}.</p>\
         <form data-max=\"{max}\"{size}{named}>\
         <p><label for=\"file\">File</label><input id=\"file\" type=\"file\" required></p>\
         <p><progress id=\"progress\" aria-label=\"Progress\" max=\"1\" value=\"0\" hidden></progress></p>\
         <button id=\"send\">Upload</button></form>\
         <p id=\"status\" role=\"status\" aria-live=\"polite\"></p>\
         <noscript><p>This page needs JavaScript. In a shell: <code>curl -T FILE 'URL of this page'</code>\
         </p></noscript>"
    );

    scripted_page("Upload", &body, &SCRIPT)
}
