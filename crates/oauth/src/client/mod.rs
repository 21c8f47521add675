//! Larder as an OAuth client: discovery of the server, the authorization request with PKCE, its
//! response, and the requests for tokens (OAuth 2.1; RFC 7636, 8414, 8693, 9207).
//!
//! A user of this module keeps the login in progress and the tokens, and decides which addresses
//! may be reached: its [`Fetcher`](super::Fetcher) is an argument.

mod lease;
mod lenient;
mod metadata;
mod pkce;
mod request;
mod response;
mod sender;
mod state;
mod tokens;

pub use lease::RefreshLease;
pub use lenient::{document, or_default};
pub use metadata::{
    DiscoveryError, Endpoint, Metadata, MetadataError, WellKnown, discover, url_named_by,
};
pub use pkce::{Verifier, challenge};
pub use request::AuthorizationRequest;
pub use response::{AuthorizationResponse, ResponseError, ResponseIssuer};
pub(crate) use sender::Sender;
pub use state::LoginState;
pub use tokens::{
    ClientIdentity, CodeGrant, ExchangeGrant, Revocation, TokenEndpoint, TokenError, Tokens,
};
