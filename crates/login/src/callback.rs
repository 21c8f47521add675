//! The browser comes back from the provider, and the user is asked whether the client may act
//! for them, unless they have allowed it before.

use std::net::IpAddr;

use larder_oauth::{
    Scopes,
    client::{AuthorizationResponse, ResponseError},
};
use larder_protocol::quote::shortened;
use subtle::ConstantTimeEq;

use super::{
    Cookie, ErrorCode, LoginServer, NextStep, Problem, Redemption,
    authorize::{Flow, cookie_name},
    client::hash,
    parameters::Parameters,
    records::{
        CODE_TTL, CheckedRequest, Code, ConsentTicket, IssuedCode, LOGIN_TTL, Records, User,
        principal,
    },
    redirect::{self, Destination},
    scopes::{OFFLINE_ACCESS, asks_offline, without_offline},
    server::{audit, audit_refused},
};

/// The name of the cookie of the question.
pub const CONSENT_COOKIE: &str = "larder-consent";

/// The question to a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsentQuestion {
    /// The ticket that the form brings back.
    pub ticket: String,
    /// The name of the client, which it has chosen itself.
    pub client: String,
    /// The URL of the client's metadata document, whose host is certain.
    pub document: Option<String>,
    /// The place that the browser is sent to after the answer.
    pub destination: Destination,
    /// The scopes.
    pub scopes: Vec<String>,
    /// The person who is logged in.
    pub user: String,
}

impl LoginServer {
    /// Goes on with the query that the provider sends. `cookie` finds the browser's cookies by
    /// name.
    ///
    /// # Errors
    /// Another browser began this login, it took too long, or something does not respond.
    pub async fn callback(
        &self,
        query: &[u8],
        peer: Option<IpAddr>,
        cookie: impl Fn(&str) -> Option<String> + Send,
    ) -> Result<NextStep, Problem> {
        self.requests.check(peer)?;
        let parameters = Parameters::read(query)?;
        let state = parameters.get("state").unwrap_or_default().to_owned();
        let name = cookie_name(&state);

        let flow = self.flow(&state, cookie(&name).as_deref()).ok_or_else(|| {
            let text = "This login was not begun in this browser, is over, or took too long. \
                        Begin again in your client.";
            Problem::request(text)
        });
        let flow = flow.inspect_err(|problem| self.audit_unknown("callback", problem))?;

        let step = self.confirmed(&parameters, flow).await;
        let step = step.inspect_err(|problem| self.audit_unknown("login", problem))?;

        // The login has ended, so the browser drops its cookie.
        Ok(match step {
            NextStep::Redirect(url, mut cookies) => {
                cookies.push(Cookie::removed(name));
                NextStep::Redirect(url, cookies)
            }
            NextStep::Refused { problem, back, destination, mut cookies } => {
                cookies.push(Cookie::removed(name));
                NextStep::Refused { problem, back, destination, cookies }
            }
        })
    }

    async fn confirmed(&self, parameters: &Parameters, flow: Flow) -> Result<NextStep, Problem> {
        let Flow { request, verifier, nonce, .. } = flow;

        let response = AuthorizationResponse::read(|name| parameters.get(name));
        let code = match response.code(&self.provider.issuer().await?) {
            Ok(code) => code,
            Err(ResponseError::Refused { error, .. }) => {
                return self.refused_by_provider(&request, error);
            }
            Err(error) => return Err(Problem::request(error.to_string())),
        };

        let redirect_uri = self.callback_url();
        let redemption = Redemption {
            code,
            code_verifier: verifier.reveal(),
            nonce: &nonce,
            redirect_uri: &redirect_uri,
        };
        let authenticated = self.provider.redeem(&redemption).await?;
        let user = User { person: authenticated.person, grant: authenticated.grant };

        let Some(allowed) = self.policy.scopes(&user.person) else {
            return Ok(self.not_allowed(&request, &user));
        };
        audit(user.principal(), &request.client, "login");

        let Some(scopes) = self.granted(&request, allowed) else {
            audit_refused(user.principal(), &request.client, "login", "no scope granted");
            let text = "The user has none of the requested scopes.";
            return self.failed_for(&request, &user, ErrorCode::InvalidScope, text).await;
        };

        if self.has_consent(&request, &user, &scopes).await? {
            let url = self.issue(request, user, scopes).await?;
            return Ok(NextStep::Redirect(url, Vec::new()));
        }

        let id = self.secret();
        let browser = self.secret();
        let ticket = ConsentTicket { request, user, scopes, browser: browser.clone() };
        self.records.create(&Records::ticket(&hash(&id)), &ticket, LOGIN_TTL).await?;
        let url = format!("{}?ticket={id}", self.url("consent"));
        Ok(NextStep::Redirect(url, vec![Cookie::new(CONSENT_COOKIE.to_owned(), browser)]))
    }

    fn refused_by_provider(
        &self,
        request: &CheckedRequest,
        error: &str,
    ) -> Result<NextStep, Problem> {
        // The text comes from the browser, so its length is bounded.
        let error = &*shortened(error);
        tracing::info!(error, "the provider refuses a login");

        let text = "The identity provider has refused the login.";
        let problem = Problem::refused(ErrorCode::AccessDenied, text);
        let step = self.failed(&request.redirect_uri, request.state.as_deref(), &problem)?;
        self.audit_unknown("login", &problem);
        Ok(step)
    }

    fn not_allowed(&self, request: &CheckedRequest, user: &User) -> NextStep {
        let why = "not allowed by auth.login.allow";
        audit_refused(user.principal(), &request.client, "login", why);

        let text = format!(
            "You are logged in as {}, who may not use this server. Ask its operator for access, \
             or log in with another account.",
            display(user)
        );
        let told = "The user may not use this server.";
        let problem = Problem::refused(ErrorCode::AccessDenied, text);
        self.refused(request, problem, ErrorCode::AccessDenied, told)
    }

    /// The scopes of a request that a user gets; `None` if the request asks for others only.
    fn granted(&self, request: &CheckedRequest, allowed: Scopes) -> Option<String> {
        let allowed = self.options.hierarchy.expand(allowed);
        let is_offline = asks_offline(request.scopes.as_deref());
        let scopes = request.scopes.as_deref().map(without_offline).unwrap_or_default();
        let asked = match scopes.as_str() {
            scopes if !scopes.is_empty() => Scopes::granted(scopes),
            // At the console a person may do what they may do at all.
            _ if self.is_of_console(&request.client.key, &request.redirect_uri) => allowed.clone(),
            _ if !self.options.default_scopes.is_empty() => self.options.default_scopes.clone(),
            _ => allowed.clone(),
        };

        let mut names: Vec<_> =
            asked.names().filter(|name| Scopes::granted(name).is_within(&allowed)).collect();
        if names.is_empty() && !asked.is_empty() {
            return None;
        }

        names.extend(is_offline.then_some(OFFLINE_ACCESS));
        Some(names.join(" "))
    }

    /// Whether the user has allowed this before. Any process on a device can name the public
    /// identifier of a metadata document and listen on loopback, so then the user is asked each
    /// time (RFC 8252, section 8.6).
    async fn has_consent(
        &self,
        request: &CheckedRequest,
        user: &User,
        scopes: &str,
    ) -> Result<bool, Problem> {
        if self.is_of_console(&request.client.key, &request.redirect_uri) {
            return Ok(true);
        }
        if request.client.document.is_some() && redirect::is_loopback(&request.redirect_uri) {
            return Ok(false);
        }

        let owner = user.principal().owner();
        let name = consent_name(request);
        let consented = self.records.consented(&owner, &name).await?;
        Ok(consented.is_some_and(|consented| {
            Scopes::granted(scopes).is_within(&Scopes::granted(&consented))
        }))
    }

    /// The question to the user of this browser.
    ///
    /// # Errors
    /// Another browser is to be asked, or it took too long.
    pub async fn question(
        &self,
        ticket: &str,
        browser: Option<&str>,
    ) -> Result<ConsentQuestion, Problem> {
        let (_, _, found) = self.find(ticket, browser).await?;
        Ok(ConsentQuestion {
            ticket: ticket.to_owned(),
            client: found.request.client.title.clone(),
            document: found.request.client.document.clone(),
            destination: Destination::of(&found.request.redirect_uri),
            scopes: Scopes::granted(&found.scopes).names().map(str::to_owned).collect(),
            user: display(&found.user),
        })
    }

    /// Goes on after the user's decision. Returns the client's redirect URI with the response.
    ///
    /// # Errors
    /// Another browser is to be asked, it took too long, or it was answered before.
    pub async fn decide(
        &self,
        ticket: &str,
        browser: Option<&str>,
        is_allowed: bool,
    ) -> Result<NextStep, Problem> {
        let (name, version, ticket) = self.find(ticket, browser).await?;
        // Taking the ticket makes a second answer fail.
        if !self.records.take(&name, version).await? {
            return Err(unknown_ticket());
        }

        let ConsentTicket { request, user, scopes, .. } = ticket;
        if !is_allowed {
            audit_refused(user.principal(), &request.client, "consent", "the user denies");
            let text = "The user has denied the request.";
            return self.failed_for(&request, &user, ErrorCode::AccessDenied, text).await;
        }

        audit(user.principal(), &request.client, "consent");
        let owner = user.principal().owner();
        self.records.remember_consent(&owner, &consent_name(&request), &scopes).await?;
        self.records.mark_used(&request.client.key, self.clock.now()).await?;

        let url = self.issue(request, user, scopes).await?;
        Ok(NextStep::Redirect(url, vec![Cookie::removed(CONSENT_COOKIE.to_owned())]))
    }

    async fn find(
        &self,
        ticket: &str,
        browser: Option<&str>,
    ) -> Result<(String, u64, ConsentTicket), Problem> {
        let name = Records::ticket(&hash(ticket));
        let found = self.records.read::<ConsentTicket>(&name).await?.ok_or_else(unknown_ticket)?;

        let is_same =
            |browser: &str| bool::from(browser.as_bytes().ct_eq(found.value.browser.as_bytes()));
        if !browser.is_some_and(is_same) {
            let problem = unknown_ticket();
            self.audit_unknown("consent", &problem);
            return Err(problem);
        }

        Ok((name, found.version, found.value))
    }

    /// The client's redirect URI with a new code.
    async fn issue(
        &self,
        request: CheckedRequest,
        user: User,
        scopes: String,
    ) -> Result<String, Problem> {
        let code = self.secret();
        let redirect_uri = request.redirect_uri.clone();
        let state = request.state.clone();
        let issued = Code::Issued(Box::new(IssuedCode { request, user, scopes }));
        self.records.create(&Records::code(&hash(&code)), &issued, CODE_TTL).await?;

        let mut parameters = vec![("code", code.as_str())];
        parameters.extend(state.as_deref().map(|state| ("state", state)));
        // RFC 9207: the issuer protects the client from a mix-up.
        parameters.push(("iss", &self.options.base_url));
        Ok(redirect::with_parameters(&redirect_uri, &parameters))
    }

    /// Tells a client that the login of this user has failed, if the user has allowed it anything
    /// before or it is on the user's device. Otherwise the user sees a page.
    async fn failed_for(
        &self,
        request: &CheckedRequest,
        user: &User,
        code: ErrorCode,
        text: &str,
    ) -> Result<NextStep, Problem> {
        let is_known = redirect::is_loopback(&request.redirect_uri) || {
            let owner = user.principal().owner();
            self.records.consented(&owner, &consent_name(request)).await?.is_some()
        };
        if !is_known {
            return Ok(self.refused(request, Problem::refused(code, text), code, text));
        }

        let CheckedRequest { redirect_uri, state, .. } = request;
        let url = self.error_url(redirect_uri, state.as_deref(), code, text);
        Ok(NextStep::Redirect(url, Vec::new()))
    }

    /// A page with a problem for the user, which links to the client's redirect URI with the error.
    fn refused(
        &self,
        request: &CheckedRequest,
        problem: Problem,
        code: ErrorCode,
        told: &str,
    ) -> NextStep {
        let CheckedRequest { redirect_uri, state, .. } = request;
        NextStep::Refused {
            problem,
            back: self.error_url(redirect_uri, state.as_deref(), code, told),
            destination: Destination::of(redirect_uri),
            cookies: Vec::new(),
        }
    }
}

/// Consent is for a client and the redirect URI that the user has seen, whatever its port on this
/// machine. A client may have registered further ones.
fn consent_name(request: &CheckedRequest) -> String {
    let redirect_uri = redirect::without_loopback_port(&request.redirect_uri);
    hash(&format!("{} {redirect_uri}", request.client.key))
}

/// The user, as they know themselves.
fn display(user: &User) -> String {
    let person = &user.person;
    let name = person.email.as_ref().or(person.name.as_ref());
    match name {
        Some(name) => larder_protocol::quote::shortened(name).into_owned(),
        None => principal(person).to_string(),
    }
}

fn unknown_ticket() -> Problem {
    let text = "This question is not for this browser, was answered, or took too long. Begin \
                again in your client.";
    Problem::request(text)
}
