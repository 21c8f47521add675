//! The pages. They are built from `web/` (`make web`) and need nothing from elsewhere.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use larder_protocol::{APP_MIME_TYPE, APPS_META};
use larder_store::store::Content;
use rmcp::model::{CacheScope, JsonObject};
use serde_json::json;

use super::{AppOptions, domain};
use crate::{
    handler::{Contents, Context, ReadContent},
    registry::Resource,
};

/// The URI of the viewer.
pub(super) const VIEW_URI: &str = "ui://larder/view.html";

/// The viewer's page with the code that draws PDF, which the viewer reads when it has to show one.
const PDF_URI: &str = "ui://larder/pdf.html";

const VIEW: &[u8] = include_bytes!("built/view.html");
const PDF: &[u8] = include_bytes!("built/pdf.html");

/// How long hosts may cache a page.
const CACHE: Duration = Duration::from_secs(60 * 60);

/// The start of that code in the page: base64 of a gzip stream.
const PDF_SCRIPT_START: &str = "<script id=\"pdf-code\" type=\"text/plain\">";

/// The script that draws PDF, compressed by gzip. Its one copy in the binary is that of the page.
pub(crate) fn pdf_script_gzip() -> Bytes {
    let page = std::str::from_utf8(PDF).unwrap_or_default();
    let packed = page.split_once(PDF_SCRIPT_START).and_then(|(_, rest)| rest.split_once('<'));
    let script = packed.and_then(|(packed, _)| BASE64_STANDARD.decode(packed).ok());
    script.expect("web/ builds the page with its script").into()
}

/// The resources of all pages.
pub(super) fn all<S: Send + Sync + 'static>(options: &Arc<AppOptions>) -> Vec<Resource<S>> {
    let about = "Shows stored content as a table, tree, log, picture or chart.";
    let pdf = "The viewer with what draws PDF.";
    vec![
        page(VIEW_URI, VIEW, "Viewer", about, options),
        page(PDF_URI, PDF, "Viewer with PDF", pdf, options),
    ]
}

fn page<S: Send + Sync + 'static>(
    uri: &'static str,
    html: &'static [u8],
    title: &str,
    description: &str,
    options: &Arc<AppOptions>,
) -> Resource<S> {
    let options = Arc::clone(options);
    let read = move |ctx: Context<S>| {
        let meta = meta(&options, &ctx);
        let content = Content::shared_text(Bytes::from_static(html));
        std::future::ready(Contents::from(ReadContent { meta: Some(meta), ..content.into() }))
    };

    Resource::new(uri, read)
        .title(title)
        .description(description)
        .mime_type(APP_MIME_TYPE)
        .size(html.len() as u64)
        .cache(CACHE, CacheScope::Private)
}

/// The page loads nothing and connects to nothing.
fn meta<S>(options: &AppOptions, ctx: &Context<S>) -> JsonObject {
    let mut ui = json!({
        "csp": { "connectDomains": [], "resourceDomains": [] },
        "prefersBorder": true,
    });
    if let Some(domain) = domain::of(options, ctx.client()) {
        ui["domain"] = domain.into();
    }

    let mut meta = JsonObject::new();
    meta.insert(APPS_META.into(), ui);
    meta
}
