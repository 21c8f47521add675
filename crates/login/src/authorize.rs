//! The authorization request of a client, up to the provider's page.

use std::net::IpAddr;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use larder_oauth::{
    Scopes,
    client::{LoginState, Verifier},
};
use larder_runtime::clock::Timestamp;
use serde::{Deserialize, Serialize};

use super::{
    AuthorizationRequest, ErrorCode, LoginServer, Problem,
    parameters::Parameters,
    records::{CheckedRequest, LOGIN_TTL},
    redirect::{self, Destination},
    server::facts,
};

/// The most bytes of a client's state and of its scopes.
const MAX_STATE: usize = 1024;
const MAX_SCOPE: usize = 1024;
/// The most bytes of the cookie: browsers keep no more than 4,096.
const MAX_COOKIE: usize = 3800;
/// How many logins a browser can have at the same time.
const COOKIES: u8 = 4;

const CONTEXT: &str = "auth/flow";

/// The next page of a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// To this URL, with these cookies.
    Redirect(String, Vec<Cookie>),
    /// Nowhere: the login has failed, and the user has not allowed the client anything before. They
    /// decide whether the browser goes on to the client.
    Refused {
        /// Why, for the user.
        problem: Problem,
        /// The client's redirect URI, with the error.
        back: String,
        /// The place that the redirect leads to, for the user.
        destination: Destination,
        /// Cookies that are of no use any more.
        cookies: Vec<Cookie>,
    },
}

/// A cookie for the pages of logins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cookie {
    /// The name.
    pub name: String,
    /// The value; empty to remove it.
    pub value: String,
    /// How long the browser keeps it, in seconds.
    pub age: u64,
}

impl Cookie {
    pub(super) fn new(name: String, value: String) -> Self {
        Self { name, value, age: LOGIN_TTL.as_secs() }
    }

    pub(super) fn removed(name: String) -> Self {
        Self { name, value: String::new(), age: 0 }
    }
}

/// A login at the provider that has begun. Sealed in a cookie, so that nothing is kept for
/// those who never log in, and only the browser that began can go on.
#[derive(Serialize, Deserialize)]
pub(super) struct Flow {
    #[serde(rename = "q")]
    pub(super) request: CheckedRequest,
    #[serde(rename = "z")]
    pub(super) state: LoginState,
    #[serde(rename = "v")]
    pub(super) verifier: Verifier,
    #[serde(rename = "x")]
    pub(super) nonce: String,
    #[serde(rename = "e")]
    expires: Timestamp,
}

impl LoginServer {
    /// Begins a login, with the query of the request.
    ///
    /// # Errors
    /// The client or its redirect URI is not known, so the user sees a page.
    pub async fn authorize(&self, query: &[u8], peer: Option<IpAddr>) -> Result<NextStep, Problem> {
        let begun = self.begin(query, peer).await;
        begun.inspect_err(|problem| self.audit_unknown("authorize", problem))
    }

    async fn begin(&self, query: &[u8], peer: Option<IpAddr>) -> Result<NextStep, Problem> {
        self.requests.check(peer)?;
        let parameters = Parameters::read(query)?;
        let client = self.client(parameters.required("client_id")?, peer).await?;
        let redirect_uri = client.redirect(parameters.get("redirect_uri"), &self.schemes)?;

        let request = match self.request(&parameters) {
            Ok((challenge, scopes, state)) => CheckedRequest {
                client: facts(&client),
                redirect_uri,
                names_redirect: parameters.get("redirect_uri").is_some(),
                state,
                challenge,
                scopes,
            },
            Err(problem) => {
                let state = parameters.get("state").filter(|state| is_state(state));
                let step = self.failed(&redirect_uri, state, &problem)?;
                self.audit_unknown("authorize", &problem);
                return Ok(step);
            }
        };

        let flow = Flow {
            request,
            state: LoginState::new(&self.random),
            verifier: Verifier::new(&self.random),
            nonce: self.random.id(),
            expires: self.clock.now().saturating_add(LOGIN_TTL),
        };

        let cookie = self.vault.sealer().seal_text(CONTEXT, &flow);
        if cookie.len() > MAX_COOKIE {
            return Err(Problem::request("The request is too long."));
        }

        let callback = self.callback_url();
        let to_provider = AuthorizationRequest {
            redirect_uri: &callback,
            state: flow.state.as_str(),
            nonce: Some(&flow.nonce),
            code_challenge: &flow.verifier.challenge(),
        };
        let url = self.provider.authorization_url(&to_provider).await?;
        let name = cookie_name(flow.state.as_str());
        Ok(NextStep::Redirect(url.into(), vec![Cookie::new(name, cookie)]))
    }

    /// The challenge, the scopes and the state of a request.
    fn request(
        &self,
        parameters: &Parameters,
    ) -> Result<(String, Option<String>, Option<String>), Problem> {
        let state = parameters.get("state").map(str::to_owned);
        if state.as_deref().is_some_and(|state| !is_state(state)) {
            return Err(Problem::request("The state is too long or not of ASCII characters."));
        }

        if parameters.required("response_type")? != "code" {
            let text = "Only the response type code is supported.";
            return Err(Problem::refused(ErrorCode::UnsupportedResponseType, text));
        }
        if parameters.get("response_mode").is_some_and(|mode| mode != "query") {
            return Err(Problem::request("Only the response mode query is supported."));
        }

        for unsupported in ["request", "request_uri"] {
            if parameters.get(unsupported).is_some() {
                return Err(Problem::request("Request objects are not supported."));
            }
        }

        if parameters.get("prompt").is_some_and(|prompt| prompt.split(' ').any(|p| p == "none")) {
            let text = "The user would have to be asked.";
            return Err(Problem::refused(ErrorCode::InteractionRequired, text));
        }

        let challenge = parameters.required("code_challenge")?;
        // A request without a method would mean `plain` (RFC 7636, section 4.3).
        if parameters.get("code_challenge_method") != Some("S256") || !is_challenge(challenge) {
            return Err(Problem::request("PKCE with the method S256 is required."));
        }

        self.check_resource(parameters)?;
        let scopes = parameters.get("scope").map(|scope| self.requested(scope)).transpose()?;
        Ok((challenge.to_owned(), scopes, state))
    }

    /// RFC 8707: tokens are for this server only. Older clients name no resource.
    pub(super) fn check_resource(&self, parameters: &Parameters) -> Result<(), Problem> {
        let Some(resource) = parameters.get("resource") else { return Ok(()) };

        let is_ours = resource.strip_suffix('/').unwrap_or(resource)
            == self.options.base_url.trim_end_matches('/');
        if is_ours {
            return Ok(());
        }

        let text = format!("The resource is not {}.", self.options.base_url);
        Err(Problem::refused(ErrorCode::InvalidTarget, text))
    }

    /// The requested scopes that this server knows. Clients add some that concern only other
    /// servers, such as `openid`.
    fn requested(&self, scope: &str) -> Result<String, Problem> {
        if scope.len() > MAX_SCOPE {
            let text = format!("The scope is over {MAX_SCOPE} bytes.");
            return Err(Problem::refused(ErrorCode::InvalidScope, text));
        }

        let requested = Scopes::granted(scope);
        let known = self.known_scopes();
        let names: Vec<_> =
            requested.names().filter(|name| Scopes::granted(name).is_within(&known)).collect();
        if names.is_empty() && !requested.is_within(&Scopes::granted("openid")) {
            let text = "This server knows none of the requested scopes.";
            return Err(Problem::refused(ErrorCode::InvalidScope, text));
        }

        Ok(names.join(" "))
    }

    /// The login of a callback, if this browser began it.
    pub(super) fn flow(&self, state: &str, cookie: Option<&str>) -> Option<Flow> {
        let flow: Flow = self.vault.sealer().open_text(CONTEXT, cookie?)?;
        let is_this = flow.state.is(Some(state)) && flow.expires > self.clock.now();
        is_this.then_some(flow)
    }

    /// Tells a client on the user's device that its request has failed. Anybody can register a
    /// client that leads elsewhere, so for all others the user sees a page: before a login, nobody
    /// is known who could have allowed it (RFC 9700, section 4.11.2). A temporary problem is for
    /// the user, too.
    pub(super) fn failed(
        &self,
        redirect_uri: &str,
        state: Option<&str>,
        problem: &Problem,
    ) -> Result<NextStep, Problem> {
        match problem {
            Problem::Refused(code, text) if redirect::is_loopback(redirect_uri) => {
                let url = self.error_url(redirect_uri, state, *code, text);
                Ok(NextStep::Redirect(url, Vec::new()))
            }
            _ => Err(problem.clone()),
        }
    }

    /// The client's redirect URI with an error.
    pub(super) fn error_url(
        &self,
        redirect_uri: &str,
        state: Option<&str>,
        code: ErrorCode,
        text: &str,
    ) -> String {
        let mut parameters = vec![("error", code.as_str()), ("error_description", text)];
        parameters.extend(state.map(|state| ("state", state)));
        // RFC 9207: errors name the issuer, too.
        parameters.push(("iss", &self.options.base_url));
        redirect::with_parameters(redirect_uri, &parameters)
    }

    /// 256 random bits.
    pub(super) fn secret(&self) -> String {
        self.random.secret()
    }
}

/// The name of a login's cookie. A browser has a few at most, or its requests would become too
/// large for proxies.
pub fn cookie_name(state: &str) -> String {
    let number = state.bytes().next().unwrap_or_default() % COOKIES;
    format!("larder-login-{number}")
}

fn is_challenge(text: &str) -> bool {
    BASE64_URL_SAFE_NO_PAD.decode(text).is_ok_and(|hash| hash.len() == 32)
}

/// RFC 6749, appendix A.5.
fn is_state(text: &str) -> bool {
    text.len() <= MAX_STATE && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}
