//! Signed links to content: whoever has the URL may do what its token says, without other
//! credentials, until it expires. The token is in the URL and nothing is stored, so every
//! instance with the same keys accepts the links of the others.

mod base;
mod download;
mod signer;

pub(crate) use self::{
    base::{BaseUrl, encode_segment},
    download::{Disposition, Download},
    signer::{Claims, LinkSigner, MAX_TOKEN_BYTES},
};
