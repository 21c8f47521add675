//! [`Assembly`]: one message, from its first byte to its last one.

use std::sync::Arc;

use bytes::Bytes;
use larder_server::handler::{
    HashedText, HashingText, ReceivedResult, ReceivedStructure, Receiving, ReceivingText,
};
use larder_store::store::Kind;

use super::{
    extractor::{Extractor, Found},
    refusal::MessageRefusal,
    utf8::Utf8Repair,
};
use crate::budget::{Charge, FREE_BYTES};

/// How many texts of one message are stored while they arrive. A result stores so many texts
/// separately.
const MAX_TEXTS: usize = 8;
/// About how much memory a text takes while it is stored: blocks in the works, and its ends.
const TEXT_BYTES: usize = 768 << 10;
/// About how much memory the ends of a stored text take.
const ENDS_BYTES: usize = 160 << 10;

/// The calls for which messages arrive.
pub(crate) trait Calls: Sync {
    /// The charge of a message that begins so. `request` is the one that it answers, if that is
    /// known.
    fn charge(&self, request: Option<i64>, head: &[u8]) -> Charge;

    /// The receiver of long texts of a message that begins so. `request` is the one that it answers,
    /// if that is known. `None` if its texts are not stored while they arrive.
    fn receiving(&self, request: Option<i64>, head: &[u8]) -> Option<Arc<Receiving>>;

    /// Whether a call still waits for what is received so.
    fn waits_for(&self, receiving: &Receiving) -> bool;
}

/// A message that arrives. Dropping it discards what it has stored.
pub(crate) struct Assembly<'a> {
    max_bytes: usize,
    /// How long the message is so far.
    length: usize,
    kept: Vec<u8>,
    charge: Charge,
    texts: Texts<'a>,
}

/// The treatment of long texts.
enum Texts<'a> {
    /// They are kept.
    Kept,
    /// The message is too short to tell. It answers that request, if one is known.
    Unknown(&'a dyn Calls, Option<i64>),
    Stored(Box<Storing<'a>>),
}

struct Storing<'a> {
    calls: &'a dyn Calls,
    receiving: Arc<Receiving>,

    extractor: Extractor,
    current: Current,
    /// The structured content, if it has long strings.
    structure: Option<Box<ReceivingText>>,
    /// The long strings of the structured content.
    strings: Vec<HashedText>,
    finished: ReceivedResult,

    utf8: Utf8Repair,
    /// Nobody waits for the message any more.
    is_abandoned: bool,
}

/// The long text that is arriving.
enum Current {
    None,
    /// One of a block, which is stored.
    Block(Box<ReceivingText>),
    /// A string of the structured content, of which the digest is enough.
    String(HashingText),
}

/// A complete message.
pub(crate) struct Arrived {
    /// The message. A URI stands for each text that is stored.
    pub(crate) bytes: Bytes,
    /// The memory that it takes.
    pub(crate) charge: Charge,
    pub(crate) stored: Option<StoredTexts>,
}

/// The texts of a message that were stored while they arrived.
pub(crate) struct StoredTexts {
    /// For whom they were stored.
    pub(crate) receiving: Arc<Receiving>,
    pub(crate) result: ReceivedResult,
}

impl<'a> Assembly<'a> {
    /// A message of at most `max_bytes`, which is kept as it is.
    pub(crate) fn plain(max_bytes: usize, charge: Charge) -> Self {
        Self { max_bytes, length: 0, kept: Vec::new(), charge, texts: Texts::Kept }
    }

    /// A message for one of these calls, for that request if it is known. Its long texts are
    /// stored if the call wants that.
    pub(crate) fn of(max_bytes: usize, calls: &'a dyn Calls, request: Option<i64>) -> Self {
        let texts = Texts::Unknown(calls, request);
        // A short message counts nothing, and its beginning tells who pays for a long one.
        Self { texts, ..Self::plain(max_bytes, Charge::default()) }
    }

    /// Adds the next bytes.
    ///
    /// # Errors
    /// The message is too long, or there is no room for it, or it is no JSON.
    pub(crate) async fn push(&mut self, bytes: &[u8]) -> Result<(), MessageRefusal> {
        self.length += bytes.len();
        if self.length > self.max_bytes {
            return Err(MessageRefusal::TooLong);
        }

        if let Texts::Unknown(calls, request) = self.texts
            && self.length > FREE_BYTES
        {
            let head = if self.kept.is_empty() { bytes } else { &self.kept };
            self.charge = calls.charge(request, head);
            self.texts = match calls.receiving(request, head) {
                None => Texts::Kept,
                Some(receiving) => {
                    let mut storing = Box::new(Storing::new(calls, receiving));
                    let before = std::mem::take(&mut self.kept);
                    storing.push(&before, &mut self.kept).await?;
                    Texts::Stored(storing)
                }
            };
        }

        if let Texts::Stored(storing) = &mut self.texts {
            storing.push(bytes, &mut self.kept).await?;
            let held = self.kept.len() + storing.memory_bytes();
            return self.charge.cover(held).await.map_err(|_| MessageRefusal::NoRoom);
        }

        let covered = self.charge.cover(self.kept.len() + bytes.len()).await;
        covered.map_err(|_| MessageRefusal::NoRoom)?;
        self.kept.extend_from_slice(bytes);
        Ok(())
    }

    /// Whether nothing has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Gives up a message. Returns the first and the last bytes that were kept.
    pub(super) fn into_ends(self, bytes: usize) -> (Vec<u8>, Vec<u8>) {
        let mut head = self.kept;
        let tail = head[head.len().saturating_sub(bytes)..].to_vec();
        head.truncate(bytes);
        head.shrink_to_fit();
        (head, tail)
    }

    /// The complete message. It is empty if nobody waits for it any more.
    pub(crate) fn finish(mut self) -> Arrived {
        if matches!(&self.texts, Texts::Stored(storing) if storing.is_abandoned) {
            self.kept.clear();
        }

        let stored = match self.texts {
            Texts::Stored(storing) => storing.finish(),
            Texts::Kept | Texts::Unknown(..) => None,
        };
        Arrived { bytes: self.kept.into(), charge: self.charge, stored }
    }
}

impl<'a> Storing<'a> {
    fn new(calls: &'a dyn Calls, receiving: Arc<Receiving>) -> Self {
        let extractor = Extractor::new(receiving.source(), receiving.longest(), MAX_TEXTS);
        Self {
            calls,
            receiving,
            extractor,
            current: Current::None,
            structure: None,
            strings: Vec::new(),
            finished: ReceivedResult::default(),
            utf8: Utf8Repair::default(),
            is_abandoned: false,
        }
    }

    /// Stores the texts in the next bytes, and keeps the others.
    async fn push(&mut self, bytes: &[u8], kept: &mut Vec<u8>) -> Result<(), MessageRefusal> {
        let utf8 = self.utf8.feed(bytes);
        let mut bytes = &*utf8;

        if self.is_storing() && !self.calls.waits_for(&self.receiving) {
            self.is_abandoned = true;
            self.end();
        }

        let mut structure = Vec::new();
        while !self.is_abandoned {
            let found = self.extractor.next(&mut bytes, kept, &mut structure);
            if !structure.is_empty() {
                self.store_structure(std::mem::take(&mut structure)).await;
            }
            let Some(found) = found else { break };
            self.handle(found, kept).await?;
        }
        Ok(())
    }

    async fn handle(&mut self, found: Found, kept: &mut Vec<u8>) -> Result<(), MessageRefusal> {
        match (found, &mut self.current) {
            (Found::Begins(kind), _) => match self.receiving.begin(kind).await {
                Some(text) => {
                    kept.extend_from_slice(text.uri().as_str().as_bytes());
                    self.current = Current::Block(Box::new(text));
                }
                None => return Err(MessageRefusal::NotJson),
            },
            (Found::StringBegins, _) => {
                let string = self.receiving.begin_hashing();
                kept.extend_from_slice(string.name().as_bytes());
                self.current = Current::String(string);
            }
            (Found::Piece(piece), Current::Block(text)) => text.write(piece.into()).await,
            (Found::Piece(piece), Current::String(string)) => string.add(&piece),
            (Found::Ends, _) => match std::mem::replace(&mut self.current, Current::None) {
                Current::Block(text) => self.finished.texts.push(text.finish().await),
                Current::String(string) => self.strings.push(string.finish()),
                Current::None => {}
            },
            (Found::StructureEnds, _) => {
                if let Some(structure) = self.structure.take() {
                    let whole = structure.finish().await;
                    let strings = std::mem::take(&mut self.strings);
                    self.finished.structure = Some(Box::new(ReceivedStructure { whole, strings }));
                }
            }
            (Found::Piece(_), Current::None) => {}
            (Found::Invalid, _) => return Err(MessageRefusal::NotJson),
        }

        Ok(())
    }

    /// Stores structured content as it is.
    async fn store_structure(&mut self, piece: Vec<u8>) {
        if self.structure.is_none() {
            self.structure = self.receiving.begin(Kind::Text).await.map(Box::new);
        }
        if let Some(structure) = &mut self.structure {
            structure.write(piece.into()).await;
        }
    }

    /// Whether something is arriving that goes to the store.
    fn is_storing(&self) -> bool {
        self.structure.is_some() || matches!(self.current, Current::Block(_))
    }

    /// Discards the texts and what else comes.
    fn end(&mut self) {
        self.current = Current::None;
        self.structure = None;
        self.finished = ReceivedResult::default();
    }

    /// About how much memory it takes.
    fn memory_bytes(&self) -> usize {
        let current = if self.is_storing() { TEXT_BYTES } else { self.extractor.held() };
        let finished = self.finished.texts.len() + usize::from(self.finished.structure.is_some());
        current + finished * ENDS_BYTES
    }

    fn finish(self) -> Option<StoredTexts> {
        let Self { receiving, finished: result, .. } = self;
        (!result.is_empty()).then_some(StoredTexts { receiving, result })
    }
}
