//! Images and audio as results.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use rmcp::model::{CallToolResult, ContentBlock};

use super::IntoToolResult;

macro_rules! media {
    ($(#[$doc:meta])* $name:ident, $block:ident; $($(#[$kind_doc:meta])* $kind:ident = $mime:literal),*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $name {
            bytes: Bytes,
            mime_type: String,
        }

        impl $name {
            /// Content of any media type.
            pub fn new(bytes: impl Into<Bytes>, mime_type: impl Into<String>) -> Self {
                Self { bytes: bytes.into(), mime_type: mime_type.into() }
            }

            $(
                $(#[$kind_doc])*
                pub fn $kind(bytes: impl Into<Bytes>) -> Self {
                    Self::new(bytes, $mime)
                }
            )*
        }

        impl From<$name> for ContentBlock {
            fn from(media: $name) -> Self {
                Self::$block(BASE64_STANDARD.encode(&media.bytes), media.mime_type)
            }
        }

        impl IntoToolResult for $name {
            fn into_tool_result(self) -> CallToolResult {
                ContentBlock::from(self).into_tool_result()
            }
        }
    };
}

media! {
    /// An image, sent in base64 with its media type. The bytes are a complete
    /// file of that type, not raw pixels.
    ///
    /// ```
    /// use larder_server::Image;
    /// use rmcp::model::ContentBlock;
    ///
    /// let block = ContentBlock::from(Image::png(&b"\x89PNG"[..]));
    /// assert_eq!(block.as_image().unwrap().mime_type, "image/png");
    /// ```
    Image, image;
    /// `image/png`
    png = "image/png",
    /// `image/jpeg`
    jpeg = "image/jpeg",
    /// `image/gif`
    gif = "image/gif",
    /// `image/webp`
    webp = "image/webp"
}

media! {
    /// Audio, sent in base64 with its media type.
    Audio, audio;
    /// `audio/wav`
    wav = "audio/wav",
    /// `audio/mpeg`
    mp3 = "audio/mpeg",
    /// `audio/ogg`
    ogg = "audio/ogg"
}
