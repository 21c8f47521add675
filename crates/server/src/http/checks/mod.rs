//! The checks of a request before it is handled, and what they note of it.

pub(super) mod bearer;
pub(super) mod cors;
mod form_slots;
pub(super) mod host_check;
mod instrument;
mod proxies;

pub(super) use self::{bearer::Admission, instrument::Measured};
pub use self::{
    form_slots::FormSlots, host_check::AllowedHosts, instrument::RequestDurations,
    proxies::TrustedProxies,
};
