//! Logins at upstreams, below the endpoint's path: pages for browsers, and the state of a
//! caller's login for terminals. Only the latter need a token of this server: a browser has none,
//! and shows a sealed ticket instead.

pub(super) mod account;
pub(super) mod pages;
