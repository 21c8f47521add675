//! Arbitrary bytes in an Authorization header: the server reads or rejects them without a
//! panic and never accepts them.

#![no_main]

use std::sync::{Arc, LazyLock};

use larder::{
    auth::{AuthOptions, Authenticator, Hierarchy, IssuerOptions, bearer_token},
    clock::ManualClock,
};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::Runtime;

/// Accepts the tokens of an issuer that cannot be reached.
static AUTHENTICATOR: LazyLock<(Runtime, Authenticator)> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let issuer = IssuerOptions {
        is_own: false,
        issuer: "http://127.0.0.1:1".into(),
        jwks_url: None,
        audiences: vec!["a".into()],
        any_typ: true,
        scope_claim: "scope".into(),
        groups_claim: "groups".into(),
        introspection: None,
    };
    let options = AuthOptions::OAuth {
        audience: "http://127.0.0.1:8000/mcp".into(),
        issuers: vec![issuer],
        hierarchy: Hierarchy::default(),
    };
    let authenticator = Authenticator::new(options, Arc::new(ManualClock::new())).unwrap();
    (runtime, authenticator)
});

fuzz_target!(|input: &[u8]| {
    let (runtime, authenticator) = &*AUTHENTICATOR;
    // Each line is tried as a header and as a token, because few inputs have
    // a valid scheme.
    let headers = || input.split(|byte| *byte == b'\n');
    let _ = bearer_token(headers());
    for header in headers() {
        let bearer = [b"Bearer ", header].concat();
        if let Ok(token) = bearer_token([bearer.as_slice()]) {
            assert!(runtime.block_on(authenticator.identify(token)).is_err());
        }
    }
});
