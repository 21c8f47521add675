//! Detection of a content's format by its media type or its first bytes.

use super::{Sample, csv, json};
use crate::media_type::{essence, is_json_lines};
use crate::words::number;
use crate::{Dialect, loose, markdown, table_detection::Verdict};

/// The format of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A single JSON value.
    Json,
    /// JSON that a strict parser refuses, or that stands within other text.
    LooseJson,
    /// A JSON value on each line.
    JsonLines,
    /// Rows of delimited fields.
    Csv(Dialect),
    /// Any other text.
    Text,
    /// An image.
    Image {
        /// The media type.
        mime_type: &'static str,
        /// Width and height in pixels, if the first bytes contain them.
        size: Option<(usize, usize)>,
    },
    /// Any other bytes.
    Binary,
}

impl Format {
    /// The format of sampled content.
    pub fn detect(sample: &Sample<'_>) -> Self {
        if !sample.is_text {
            return image(sample.head).unwrap_or(Self::Binary);
        }
        if sample.value.is_some() {
            return Self::Json;
        }

        let essence = essence(sample.mime_type.unwrap_or("text/plain"));

        match essence.as_str() {
            "text/csv" => Self::Csv(csv::declared(sample, b',')),
            "text/tab-separated-values" => Self::Csv(csv::declared(sample, b'\t')),
            kind if is_json_lines(kind) => Self::JsonLines,
            // The declared type may be wrong; then the content is shown as text.
            kind if kind == "application/json" || kind.ends_with("+json") => {
                if json::is_value(sample) {
                    Self::Json
                } else if seems_json(sample) {
                    Self::LooseJson
                } else {
                    Self::Text
                }
            }
            "text/plain" if json::is_lines(sample) => Self::JsonLines,
            "text/plain" if json::is_value(sample) => Self::Json,
            "text/plain" if seems_json(sample) => Self::LooseJson,
            // The records of such a text are those of a table, which is not the whole text.
            "text/plain" if markdown::seems_table(sample.text()) => Self::Text,
            "text/plain" => match csv::undeclared(sample) {
                Verdict::Table(dialect) => Self::Csv(dialect),
                Verdict::Perhaps(_) | Verdict::No => Self::Text,
            },
            _ => Self::Text,
        }
    }

    /// The media type of the format.
    pub fn mime_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::JsonLines => "application/x-ndjson",
            Self::Csv(Dialect { delimiter: b'\t', .. }) => "text/tab-separated-values",
            Self::Csv(_) => "text/csv",
            // Strict parsers of others refuse loose JSON.
            Self::Text | Self::LooseJson => "text/plain",
            Self::Image { mime_type, .. } => mime_type,
            Self::Binary => "application/octet-stream",
        }
    }
}

/// Whether the content is JSON that needs repair, judging by the sample.
fn seems_json(sample: &Sample<'_>) -> bool {
    loose::seems_json(sample.head, sample.is_whole())
}

fn image(head: &[u8]) -> Option<Format> {
    use imagesize::ImageType;

    let mime_type = match imagesize::image_type(head).ok()? {
        ImageType::Bmp => "image/bmp",
        ImageType::Gif => "image/gif",
        ImageType::Ico => "image/vnd.microsoft.icon",
        ImageType::Jpeg => "image/jpeg",
        ImageType::Png => "image/png",
        ImageType::Tiff => "image/tiff",
        ImageType::Webp => "image/webp",
        _ => return None,
    };

    let size = imagesize::blob_size(head).ok().map(|size| (size.width, size.height));
    Some(Format::Image { mime_type, size })
}

/// Facts about binary content.
pub(super) fn facts(sample: &Sample<'_>) -> Vec<String> {
    match image(sample.head) {
        Some(Format::Image { mime_type, size }) => {
            let kind = mime_type.rsplit(['/', '.']).next().unwrap_or_default().to_uppercase();
            let pixels = |n: usize| number(n as u64);

            vec![match size {
                Some((width, height)) => {
                    format!("{kind} image, {} x {} pixels", pixels(width), pixels(height))
                }
                None => format!("{kind} image; its dimensions are not in the first bytes"),
            }]
        }
        _ => {
            let first: Vec<_> = sample.head.iter().take(16).map(|b| format!("{b:02x}")).collect();
            vec![format!("Binary; the first bytes are {}", first.join(" "))]
        }
    }
}
