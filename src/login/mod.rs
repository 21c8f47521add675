//! `[auth] mode = "login"`: Larder is the authorization server of its own clients, in front of one
//! identity provider that knows neither dynamic registration nor client metadata documents.

mod person;
mod policy;
mod provider;
mod providers;

pub use self::{
    person::Person,
    policy::{Allow, Policy, Rule},
    provider::{
        Authenticated, AuthorizationRequest, IdentityProvider, ProviderError, ProviderGrant,
        Redemption, ResponseIssuer,
    },
    providers::{ProviderKind, ProviderOptions, ProviderOptionsError},
};
