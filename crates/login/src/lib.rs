//! `[auth] mode = "login"`: Larder is the authorization server of its own clients, in front of one
//! identity provider that knows neither dynamic registration nor client metadata documents.
//!
//! A client's request (`authorize`) is sealed in a cookie while the user is at the provider.
//! After that (`callback`) the user is asked once, and the client gets a code, which it redeems
//! for tokens (`tokens`). What is kept (`records`) is sealed and expires.

mod authorize;
mod callback;
mod client;
mod documents;
mod fetch_slots;
mod known_callbacks;
mod own_console;
mod own_tokens;
mod parameters;
mod person;
mod policy;
mod problem;
mod provider;
mod providers;
mod rate;
mod records;
mod redirect;
mod refresh;
mod refresh_token;
mod scopes;
mod server;
mod signing;
mod tokens;

pub use self::{
    authorize::{Cookie, NextStep, cookie_name},
    callback::{CONSENT_COOKIE, ConsentQuestion},
    client::MAX_REGISTRATION,
    own_console::OwnConsole,
    parameters::{MAX_BYTES as MAX_PARAMETER_BYTES, Parameters},
    person::Person,
    policy::{Allow, Policy, Rule},
    problem::{ErrorCode, FetchLimit, Problem},
    provider::{
        Authenticated, IdentityProvider, ProviderError, ProviderGrant, Redemption, Renewed,
    },
    providers::{ProviderKind, ProviderOptions, ProviderOptionsError},
    redirect::{Destination, check_app_scheme},
    server::{LoginOptions, LoginServer},
};
pub use self::{
    providers::{AccessClient, AccessClientOptions},
    rate::{RateLimit, host_of},
};
pub use larder_oauth::client::{AuthorizationRequest, ResponseIssuer};
