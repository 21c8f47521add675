//! The token endpoint, and revocation (RFC 6749, 7009, 7636).

use std::{net::IpAddr, sync::Arc, time::Duration};

use larder_oauth::client::{RefreshLease, challenge};
use larder_runtime::panics::PanicSite;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use super::{
    ErrorCode, LoginServer, Problem,
    client::{hash, key},
    parameters::Parameters,
    records::{Code, Grant, IssuedCode, IssuedToken, Records, Versioned},
    refresh_token::RefreshToken,
    scopes::without_offline,
    server::{audit, audit_refused},
};

/// How long an access token is valid.
pub(super) const ACCESS_TTL: Duration = Duration::from_secs(600);

/// How a request for tokens arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenRoute {
    /// At the token endpoint, from anyone.
    Endpoint,
    /// From the console of this server, in the same process.
    Console,
}

/// Why there are no tokens.
pub(super) struct TokenFailure {
    pub(super) problem: Problem,
    /// Whether the audit log says it already, with the user.
    pub(super) is_audited: bool,
}

impl From<Problem> for TokenFailure {
    fn from(problem: Problem) -> Self {
        Self { problem, is_audited: false }
    }
}

impl LoginServer {
    /// Answers a request for tokens that arrives at the token endpoint.
    ///
    /// # Errors
    /// The grant or the client is not valid, the client is the console of this server, or something
    /// does not respond.
    pub async fn token(
        self: &Arc<Self>,
        form: Vec<u8>,
        has_credentials: bool,
        peer: Option<IpAddr>,
    ) -> Result<Value, Problem> {
        self.token_by(TokenRoute::Endpoint, form, has_credentials, peer).await
    }

    /// Answers a request for tokens. It goes on when the client goes away: the provider may have
    /// replaced its own tokens already.
    pub(super) async fn token_by(
        self: &Arc<Self>,
        route: TokenRoute,
        form: Vec<u8>,
        has_credentials: bool,
        peer: Option<IpAddr>,
    ) -> Result<Value, Problem> {
        self.requests.check(peer)?;

        let this = Arc::clone(self);
        let span = tracing::Span::current();
        let answer = async move { this.answer(route, &form, has_credentials).await };
        let answer = tokio::spawn(tracing::Instrument::instrument(answer, span)).await;
        let answer = answer.unwrap_or_else(|error| {
            PanicSite::Request.count();
            Err(Problem::unavailable("a request panicked", &error).into())
        });

        answer.map_err(|TokenFailure { problem, is_audited }| {
            if !is_audited {
                self.audit_unknown("token", &problem);
            }
            problem
        })
    }

    async fn answer(
        &self,
        route: TokenRoute,
        form: &[u8],
        has_credentials: bool,
    ) -> Result<Value, TokenFailure> {
        let parameters = Parameters::read(form)?;
        if has_credentials || parameters.get("client_secret").is_some() {
            let text = "Clients of this server have no secret: send client_id alone.";
            return Err(Problem::refused(ErrorCode::InvalidClient, text).into());
        }

        let grant_type = parameters.required("grant_type")?.to_owned();
        let Some(client) = parameters.get("client_id") else {
            let text = "The parameter client_id is missing.";
            return Err(Problem::refused(ErrorCode::InvalidClient, text).into());
        };
        if route == TokenRoute::Endpoint && self.is_console_key(&key(client)) {
            let text = "This client is the console of this server, which gets its tokens in the \
                        server: register a client.";
            return Err(Problem::refused(ErrorCode::InvalidClient, text).into());
        }
        self.check_resource(&parameters)?;

        match grant_type.as_str() {
            "authorization_code" => self.redeem(&self.client_key(client).await?, &parameters).await,
            "refresh_token" => self.refresh(&self.client_key(client).await?, &parameters).await,
            _ => {
                let text = "Only authorization_code and refresh_token are supported.";
                Err(Problem::refused(ErrorCode::UnsupportedGrantType, text).into())
            }
        }
    }

    async fn redeem(&self, client: &str, parameters: &Parameters) -> Result<Value, TokenFailure> {
        let invalid = || Problem::grant("The code is not valid, or was redeemed before.");
        let name = Records::code(&hash(parameters.required("code")?));
        let found = self.records.read::<Code>(&name).await?.ok_or_else(invalid)?;
        let issued = match found.value {
            Code::Issued(issued) => *issued,
            Code::Redeemed(grant) => {
                let is_audited = self.replayed(&grant).await?;
                return Err(TokenFailure { problem: invalid(), is_audited });
            }
        };

        let IssuedCode { request, user, scopes } = issued;
        if request.client.key != client {
            return Err(invalid().into());
        }

        let redirect_uri = parameters.get("redirect_uri");
        let is_same =
            redirect_uri.map_or(!request.names_redirect, |uri| uri == request.redirect_uri);
        if !is_same {
            return Err(Problem::grant("The redirect_uri is not that of the request.").into());
        }

        let verifier = parameters.required("code_verifier")?;
        let is_verifier =
            (43..=128).contains(&verifier.len()) && same(&challenge(verifier), &request.challenge);
        if !is_verifier {
            return Err(Problem::grant("The code_verifier does not fit the code_challenge.").into());
        }

        let id = self.random.id();
        let secret = self.secret();
        let grant = Grant {
            client: request.client,
            user,
            scopes,
            refresh: hash(&secret),
            refreshing_until: RefreshLease::default(),
            since: Some(self.clock.now()),
            replaced: Vec::new(),
            latest: None,
        };

        // Signing reads the keys, which can fail, so it precedes the redemption of the code.
        let issued = self.issued(&id, &grant, parameters.required("client_id")?).await?;
        if !self.records.redeem(&name, found.version, &id).await? {
            // Another request has redeemed the code: one of the two clients has stolen it.
            if let Some(Versioned { value: Code::Redeemed(grant), .. }) =
                self.records.read::<Code>(&name).await?
            {
                let is_audited = self.replayed(&grant).await?;
                return Err(TokenFailure { problem: invalid(), is_audited });
            }
            return Err(invalid().into());
        }

        // The grant cannot be created if a second redemption has revoked it meanwhile.
        let ttl = self.lifetime(&grant);
        if !self.records.create(&Records::grant(&id), &grant, ttl).await? {
            return Err(invalid().into());
        }

        audit(grant.user.principal(), &grant.client, "token");
        Ok(self.response(&issued, &id, &secret))
    }

    /// Revokes what the first use of a code has given. Returns whether there was something.
    async fn replayed(&self, grant: &str) -> Result<bool, Problem> {
        let Some(grant) = self.records.revoke(grant).await? else { return Ok(false) };
        let why = "its code was redeemed twice, so all its tokens are revoked";
        audit_refused(grant.user.principal(), &grant.client, "token", why);
        Ok(true)
    }

    /// New tokens of a grant. `client` is the identifier that the client is registered under.
    pub(super) async fn issued(
        &self,
        id: &str,
        grant: &Grant,
        client: &str,
    ) -> Result<IssuedToken, Problem> {
        let now = self.clock.now();
        let ttl = self.access_ttl(client, ACCESS_TTL);
        let seconds = now.as_millis() / 1000;
        let claims = json!({
            "iss": self.options.base_url,
            "aud": self.options.base_url,
            "sub": grant.user.person.subject,
            // RFC 9068, section 2.2.
            "client_id": client,
            "scope": without_offline(&grant.scopes),
            "iat": seconds,
            "exp": seconds + ttl.as_secs(),
            "jti": self.random.id(),
            "sid": id,
        });

        let access = self.keys.sign(&claims).await?;
        Ok(IssuedToken { access, scopes: grant.scopes.clone(), expires: now.saturating_add(ttl) })
    }

    /// The response with tokens. The refresh token has the grant's ID and its secret.
    pub(super) fn response(&self, token: &IssuedToken, id: &str, secret: &str) -> Value {
        let left = token.expires.since(self.clock.now());
        json!({
            "access_token": token.access,
            "token_type": "Bearer",
            "expires_in": left.as_secs(),
            "refresh_token": RefreshToken { grant: id, secret }.to_string(),
            "scope": token.scopes,
        })
    }

    /// Revokes a refresh token and with it all tokens of its grant, or the grant of an access
    /// token. An unknown one is revoked already (RFC 7009, section 2.2).
    ///
    /// # Errors
    /// The store does not respond.
    pub async fn revoke(
        &self,
        form: &[u8],
        has_credentials: bool,
        peer: Option<IpAddr>,
    ) -> Result<(), Problem> {
        self.requests.check(peer)?;
        let parameters = Parameters::read(form)?;
        if has_credentials {
            let text = "Clients of this server have no secret: send client_id alone.";
            return Err(Problem::refused(ErrorCode::InvalidClient, text));
        }

        let token = parameters.required("token")?;
        let (id, secret) = match RefreshToken::parse(token) {
            Some(RefreshToken { grant, secret }) => (grant.to_owned(), Some(secret)),
            None => match self.session_of(token).await? {
                Some(id) => (id, None),
                None => return Ok(()),
            },
        };

        let Some(found) = self.records.read::<Grant>(&Records::grant(&id)).await? else {
            return Ok(());
        };
        let grant = found.value;

        // A token that was replaced a moment ago still gives tokens, so it revokes them, too.
        let now = self.clock.now();
        let is_valid = secret.is_none_or(|secret| grant.accepts(secret, now));
        let client = parameters.get("client_id").map(hash);
        if is_valid && client.is_none_or(|client| client == grant.client.key) {
            self.records.revoke(&id).await?;
            audit(grant.user.principal(), &grant.client, "revocation");
        }

        Ok(())
    }

    /// The grant of an access token, if this server has signed it.
    pub(super) async fn session_of(&self, token: &str) -> Result<Option<String>, Problem> {
        #[derive(serde::Deserialize)]
        struct TokenClaims {
            sid: String,
        }

        let keys: jsonwebtoken::jwk::JwkSet = serde_json::from_value(self.keys.public().await?)
            .unwrap_or(jsonwebtoken::jwk::JwkSet { keys: Vec::new() });
        let kid = jsonwebtoken::decode_header(token).ok().and_then(|header| header.kid);
        let Some(key) = kid.and_then(|kid| keys.find(&kid).cloned()) else { return Ok(None) };
        let Ok(key) = jsonwebtoken::DecodingKey::from_jwk(&key) else { return Ok(None) };

        let mut checks = jsonwebtoken::Validation::new(jsonwebtoken::Algorithm::ES256);
        // An expired token can be revoked, too.
        checks.validate_exp = false;
        checks.required_spec_claims.clear();
        checks.set_audience(&[&self.options.base_url]);

        let claims = jsonwebtoken::decode::<TokenClaims>(token, &key, &checks);
        Ok(claims.ok().map(|token| token.claims.sid))
    }
}

pub(super) fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
