//! [`LoginState`]: the parameter `state`, by which a login recognizes its response.

use larder_runtime::random::Random;
use serde::{Deserialize, Serialize};

/// The state of a login, which its authorization response must bring back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LoginState(String);

impl LoginState {
    /// A state of 128 random bits (RFC 6749, section 10.10).
    pub fn new(random: &Random) -> Self {
        Self(random.id())
    }

    /// Whether an authorization response has this state.
    pub fn is(&self, response: Option<&str>) -> bool {
        response == Some(self.as_str())
    }

    /// The parameter of the authorization request.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_response_to_the_request_has_its_state() {
        let random = Random::system();
        let state = LoginState::new(&random);
        let other = LoginState::new(&random);

        assert!(state.is(Some(state.as_str())));
        for foreign in [None, Some(""), Some(&state.as_str()[1..]), Some(other.as_str())] {
            assert!(!state.is(foreign), "{foreign:?}");
        }
    }
}
