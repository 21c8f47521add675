//! How long credentials stay valid after their request was authenticated.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;

/// Resolves when the credentials of a request are no longer valid. Cheap to clone.
#[derive(Clone)]
pub struct Validity(Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>);

impl Validity {
    /// A validity that ends when the future of `ended` resolves.
    pub fn new(ended: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static) -> Self {
        Self(Arc::new(ended))
    }

    /// Resolves when the credentials expire or were revoked. A revocation is noticed when
    /// their cached verification ends.
    pub fn ended(&self) -> BoxFuture<'static, ()> {
        (self.0)()
    }
}

impl fmt::Debug for Validity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validity")
    }
}
