//! [`Form`]: how content is read as records.

use std::sync::Arc;

use bytes::Bytes;
use larder_identity::Owner;
use larder_records::{Conversion, Dialect, Layout, TextEncoding, notes::Note, preview::HEAD_BYTES};
use larder_runtime::{clock::Timestamp, compute::Compute};

use super::{
    Content, Details, Entry, Kind, RecordsError, StoreError, StoredResource, indexing,
    text_view::text_type,
};

/// The most bytes of content that is changed as a whole for a description or a window of records.
/// Queries change more, in processes of their own.
const MAX_CONVERTED: u64 = 16 << 20;

/// How content is read as records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// How the bytes are text, if they are not UTF-8.
    pub encoding: Option<TextEncoding>,
    /// The division of the text into records; `None` for lines of text.
    pub layout: Option<Layout>,
    /// The change of the text that makes records.
    pub conversion: Option<Conversion>,
}

/// Content that was changed into records.
#[derive(Clone)]
pub struct RecordView {
    /// The records, with the metadata of the stored resource.
    pub records: StoredResource,
    /// Whether jq gets the content as it was.
    pub is_for_tables: bool,
    /// Notes about the changes.
    pub notes: Vec<Note>,
}

impl StoredResource {
    /// How the content is read as records, judging by its first bytes. `None` for content that is
    /// no text. `mime_type` replaces the media type of the content, `encoding` what its bytes
    /// show.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn form(
        &self,
        mime_type: Option<&str>,
        encoding: Option<TextEncoding>,
    ) -> Result<Option<Form>, StoreError> {
        let encoding = match encoding {
            Some(encoding) => Some(encoding),
            None => self.text_encoding().await?,
        };
        let (head, is_whole) = self.text_head(encoding).await?;
        if self.entry.kind == Kind::Binary && encoding.is_none() {
            let conversion = Conversion::of_bytes(&head);
            return Ok(conversion.map(|_| Form { encoding, layout: None, conversion }));
        }

        let stored = self.entry.records.as_ref().filter(|_| mime_type.is_none());
        let known = stored.map(|index| index.layout());
        let mime_type = mime_type.unwrap_or(&self.entry.mime_type);
        let mime_type =
            if encoding.is_some() { text_type(mime_type) } else { mime_type.to_owned() };

        let owner = self.entry.owner.as_str();
        let detecting = Compute::run(owner, head.len(), move || {
            if let Some(conversion) = Conversion::of_type(&mime_type, &head) {
                return Form { encoding, layout: None, conversion: Some(conversion) };
            }

            let layout = known.or_else(|| indexing::detect(&mime_type, &head, is_whole));
            let conversion = match layout {
                Some(Layout::Json) => Conversion::of_strict_json(&head),
                None => Conversion::of_json(&head, is_whole)
                    .or_else(|| Conversion::of_text(&head, is_whole)),
                Some(_) => None,
            };
            Form { encoding, layout, conversion }
        });
        Ok(Some(detecting.done().await?))
    }

    /// How text that seems to be none may be read as a table.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn possible_table(&self) -> Result<Option<Dialect>, StoreError> {
        if self.entry.kind == Kind::Binary {
            return Ok(None);
        }
        let (head, is_whole) = self.text_head(None).await?;
        let owner = self.entry.owner.as_str();
        let detecting = Compute::run(owner, head.len(), move || {
            larder_records::possible_table(&head, is_whole)
        });
        Ok(detecting.done().await?)
    }

    /// The first bytes of the text, and whether they are all.
    async fn text_head(&self, encoding: Option<TextEncoding>) -> Result<(Bytes, bool), StoreError> {
        match encoding {
            None => {
                let (head, _) = self.head_and_tail(HEAD_BYTES as u64, 0).await?;
                let is_whole = head.len() as u64 == self.entry.size;
                Ok((head, is_whole))
            }
            Some(encoding) => {
                let head = self.decoded_head(encoding).await?;
                // A text that fills the head may be the beginning of a longer one.
                let is_short = self.entry.size <= HEAD_BYTES as u64;
                let is_whole = is_short && head.len() < HEAD_BYTES;
                Ok((head, is_whole))
            }
        }
    }

    /// Text that has to be changed to have records, as records; `None` if it has not, or is too
    /// long to be changed here. Works for `caller`.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn record_view(&self, caller: &Owner) -> Result<Option<RecordView>, StoreError> {
        if self.entry.kind == Kind::Binary || self.entry.size > MAX_CONVERTED {
            return Ok(None);
        }

        let form = self.form(None, None).await?;
        self.record_view_of(caller, form).await
    }

    /// A record view, as [`record_view`](Self::record_view) makes it, of content in this form.
    ///
    /// # Errors
    /// The content cannot be read.
    pub async fn record_view_of(
        &self,
        caller: &Owner,
        form: Option<Form>,
    ) -> Result<Option<RecordView>, StoreError> {
        if self.entry.kind == Kind::Binary || self.entry.size > MAX_CONVERTED {
            return Ok(None);
        }

        let mut conversion = form.and_then(|form| form.conversion);
        let is_json = form.is_some_and(|form| form.layout == Some(Layout::Json));
        let may_be_malformed = self.entry.records.is_none() && self.entry.size > HEAD_BYTES as u64;

        // JSON may have faults that its first bytes do not show.
        if is_json
            && may_be_malformed
            && let Err(RecordsError::Fault(_)) = self.record_index(caller, None).await
        {
            conversion = Some(Conversion::LooseJson);
        }
        let Some(conversion) = conversion.filter(|conversion| !conversion.is_for_queries()) else {
            return Ok(None);
        };

        let bytes = self.bytes().await?;
        let converting =
            Compute::run(caller.as_str(), bytes.len(), move || conversion.convert(&bytes));
        let Some(converted) = converting.done().await? else { return Ok(None) };

        let mime_type = match converted.layout {
            Layout::Json => "application/json",
            Layout::JsonLines => "application/x-ndjson",
            Layout::Rows(_) => "text/csv",
            Layout::Log => "text/plain",
        };

        let content = Content::shared_text(converted.bytes.into());
        let records = self.view(content, mime_type.to_owned()).await?;
        let is_for_tables = conversion.is_for_tables() || converted.is_for_tables;
        Ok(Some(RecordView { records, is_for_tables, notes: converted.notes }))
    }

    /// A view of this resource: other text of this media type, with all other metadata.
    pub(super) async fn view(&self, text: Content, mime_type: String) -> Result<Self, StoreError> {
        let entry = &self.entry;
        let details = Details { mime_type: Some(mime_type), ..Details::default() };
        let now = Timestamp::from_millis(0);
        let made =
            Self::detached(entry.uri.clone(), entry.owner.clone(), text, details, now).await?;

        let view = Entry {
            kind: Kind::Text,
            mime_type: made.entry.mime_type.clone(),
            size: made.entry.size,
            lines: made.entry.lines,
            sha256: made.entry.sha256.clone(),
            blocks: Arc::clone(&made.entry.blocks),
            records: made.entry.records.clone(),
            ..Entry::clone(entry)
        };
        Ok(Self { entry: Arc::new(view), blob: made.blob })
    }
}
