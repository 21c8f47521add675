//! The token endpoint, and revocation (RFC 6749, 7009, 7636).

use std::{net::IpAddr, sync::Arc, time::Duration};

use larder_oauth::{
    Scopes,
    client::{RefreshLease, challenge},
};
use larder_runtime::panics::PanicSite;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;

use super::{
    ErrorCode, LoginServer, Problem, ProviderError,
    client::hash,
    parameters::Parameters,
    records::{Code, Grant, IssuedCode, Records, Versioned},
    server::{audit, audit_refused},
};

/// How long an access token is valid.
pub(super) const ACCESS_TTL: Duration = Duration::from_secs(600);
/// How long one request may take to refresh, before another one tries.
const LEASE: Duration = Duration::from_secs(30);

/// Why there are no tokens.
struct Failure {
    problem: Problem,
    /// Whether the audit log says it already, with the user.
    is_audited: bool,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { problem, is_audited: false }
    }
}

impl LoginServer {
    /// Answers a request for tokens. It goes on when the client goes away: the provider may have
    /// replaced its own tokens already.
    ///
    /// # Errors
    /// The grant or the client is not valid, or something does not respond.
    pub async fn token(
        self: &Arc<Self>,
        form: Vec<u8>,
        has_credentials: bool,
        peer: Option<IpAddr>,
    ) -> Result<Value, Problem> {
        self.requests.check(peer)?;

        let this = Arc::clone(self);
        let span = tracing::Span::current();
        let answer = async move { this.answer(&form, has_credentials).await };
        let answer = tokio::spawn(tracing::Instrument::instrument(answer, span)).await;
        let answer = answer.unwrap_or_else(|error| {
            PanicSite::Request.count();
            Err(Problem::unavailable("a request panicked", &error).into())
        });

        answer.map_err(|Failure { problem, is_audited }| {
            if !is_audited {
                self.audit_unknown("token", &problem);
            }
            problem
        })
    }

    async fn answer(&self, form: &[u8], has_credentials: bool) -> Result<Value, Failure> {
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

    async fn redeem(&self, client: &str, parameters: &Parameters) -> Result<Value, Failure> {
        let invalid = || Problem::grant("The code is not valid, or was redeemed before.");
        let name = Records::code(&hash(parameters.required("code")?));
        let found = self.records.read::<Code>(&name).await?.ok_or_else(invalid)?;
        let issued = match found.value {
            Code::Issued(issued) => *issued,
            Code::Redeemed(grant) => {
                let is_audited = self.replayed(&grant).await?;
                return Err(Failure { problem: invalid(), is_audited });
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

        let (id, secret) = (self.random.id(), self.secret());
        let grant = Grant {
            client: request.client,
            user,
            scopes,
            refresh: hash(&secret),
            refreshing_until: RefreshLease::default(),
        };

        // Signing reads the keys, which can fail, so it precedes the redemption of the code.
        let tokens = self.issued(&id, &grant, &secret).await?;
        if !self.records.redeem(&name, found.version, &id).await? {
            // Another request has redeemed the code: one of the two clients has stolen it.
            if let Some(Versioned { value: Code::Redeemed(grant), .. }) =
                self.records.read::<Code>(&name).await?
            {
                let is_audited = self.replayed(&grant).await?;
                return Err(Failure { problem: invalid(), is_audited });
            }
            return Err(invalid().into());
        }

        // The grant cannot be created if a second redemption has revoked it meanwhile.
        let ttl = self.options.refresh_ttl;
        if !self.records.create(&Records::grant(&id), &grant, ttl).await? {
            return Err(invalid().into());
        }

        audit(grant.user.principal(), &grant.client, "token");
        Ok(tokens)
    }

    /// Revokes what the first use of a code has given. Returns whether there was something.
    async fn replayed(&self, grant: &str) -> Result<bool, Problem> {
        let Some(grant) = self.records.revoke(grant).await? else { return Ok(false) };
        let why = "its code was redeemed twice, so all its tokens are revoked";
        audit_refused(grant.user.principal(), &grant.client, "token", why);
        Ok(true)
    }

    async fn refresh(&self, client: &str, parameters: &Parameters) -> Result<Value, Failure> {
        let invalid = || Problem::grant("The refresh token is not valid. Log in again.");
        let token = parameters.required("refresh_token")?;
        let (id, secret) = token.split_once('.').ok_or_else(invalid)?;

        // A grant ID has 32 hexadecimal digits, so no other text is looked up.
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let name = Records::grant(id);
        let found = if is_id { self.records.read::<Grant>(&name).await? } else { None };
        let mut found = found.ok_or_else(invalid)?;
        if found.value.client.key != client {
            return Err(invalid().into());
        }

        if !same(&hash(secret), &found.value.refresh) {
            // Either the client or a thief has used this token before and has the newer token.
            self.records.revoke(id).await?;
            let why = "a refresh token was used twice, so all its tokens are revoked";
            audit_refused(found.value.user.principal(), &found.value.client, "refresh", why);
            return Err(Failure { problem: invalid(), is_audited: true });
        }

        let now = self.clock.now();
        if !found.value.refreshing_until.take(now, LEASE) {
            return Err(Problem::Unavailable(Duration::from_secs(1)).into());
        }

        let scopes = self.narrowed(&found.value, parameters)?;
        let ttl = self.options.refresh_ttl;
        if !self.records.update(&name, &mut found, ttl).await? {
            return Err(Problem::Unavailable(Duration::from_secs(1)).into());
        }

        match self.ask_again(&name, &mut found).await {
            Ok(()) => {}
            Err(Problem::Refused(code, text)) => {
                self.records.revoke(id).await?;
                let why = "the provider or the policy no longer allows the user";
                audit_refused(found.value.user.principal(), &found.value.client, "refresh", why);
                let problem = Problem::Refused(code, text);
                return Err(Failure { problem, is_audited: true });
            }
            Err(problem) => {
                found.value.refreshing_until.release();
                self.records.update(&name, &mut found, ttl).await?;
                return Err(problem.into());
            }
        }

        // The policy may grant other scopes than before.
        let grant = &mut found.value;
        let allowed = self.policy.scopes(&grant.user.person).unwrap_or_default();
        let allowed = self.options.hierarchy.expand(allowed);
        grant.scopes = within(&grant.scopes, &allowed);

        let secret = self.secret();
        grant.refresh = hash(&secret);
        grant.refreshing_until.release();
        let issued = Grant { scopes: within(&scopes, &allowed), ..grant.clone() };
        let tokens = self.issued(id, &issued, &secret).await?;

        if !self.records.update(&name, &mut found, ttl).await? {
            // The grant was revoked meanwhile.
            return Err(invalid().into());
        }

        // A failure is harmless, because the next refresh marks the client again.
        let _ = self.records.mark_used(&found.value.client.key, now).await;
        audit(found.value.user.principal(), &found.value.client, "refresh");
        Ok(tokens)
    }

    /// A client may ask for fewer scopes, for this access token.
    fn narrowed(&self, grant: &Grant, parameters: &Parameters) -> Result<String, Problem> {
        let Some(scope) = parameters.get("scope") else { return Ok(grant.scopes.clone()) };
        let known = self.known_scopes();
        let asked = within(scope, &known);
        if Scopes::granted(&asked).is_within(&Scopes::granted(&grant.scopes)) {
            return Ok(if asked.is_empty() { grant.scopes.clone() } else { asked });
        }

        let text = "The refresh token does not have these scopes. Log in again for more.";
        Err(Problem::refused(ErrorCode::InvalidScope, text))
    }

    /// Asks the provider who the user is now. Its new tokens are stored before anything else can
    /// fail, because it may have revoked the old ones.
    async fn ask_again(&self, name: &str, found: &mut Versioned<Grant>) -> Result<(), Problem> {
        let out = || Problem::grant("The user may no longer use this server.");
        let problem = |error| match error {
            ProviderError::Refused(reason) => {
                tracing::info!(reason, "the provider no longer confirms a user");
                out()
            }
            unavailable @ ProviderError::Unavailable(_) => unavailable.into(),
        };

        if let Some(before) = &found.value.user.grant {
            let renewed = self.provider.renew(before).await.map_err(problem)?;
            if renewed.grant != *before {
                found.value.user.grant = Some(renewed.grant.clone());
                if !self.records.update(name, found, self.options.refresh_ttl).await? {
                    // The grant was revoked meanwhile, or another request refreshes it.
                    return Err(Problem::Unavailable(Duration::from_secs(1)));
                }
            }

            let person = self.provider.person(&renewed).await.map_err(problem)?;
            let user = &mut found.value.user;
            if (&person.issuer, &person.subject) != (&user.person.issuer, &user.person.subject) {
                return Err(out());
            }
            user.person = person;
        }

        self.policy.scopes(&found.value.user.person).map(|_| ()).ok_or_else(out)
    }

    /// The response with the tokens of a grant.
    async fn issued(&self, id: &str, grant: &Grant, secret: &str) -> Result<Value, Problem> {
        let now = self.clock.now().as_millis() / 1000;
        let expires = now + ACCESS_TTL.as_secs();
        let claims = json!({
            "iss": self.options.base_url,
            "aud": self.options.base_url,
            "sub": grant.user.person.subject,
            "client_id": grant.client.label,
            "scope": grant.scopes,
            "iat": now,
            "exp": expires,
            "jti": self.random.id(),
            "sid": id,
        });

        Ok(json!({
            "access_token": self.keys.sign(&claims).await?,
            "token_type": "Bearer",
            "expires_in": ACCESS_TTL.as_secs(),
            "refresh_token": format!("{id}.{secret}"),
            "scope": grant.scopes,
        }))
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
        let (id, secret) = match token.split_once('.') {
            Some((id, secret)) if id.len() == 32 => (id.to_owned(), Some(secret)),
            _ => match self.session_of(token).await? {
                Some(id) => (id, None),
                None => return Ok(()),
            },
        };

        let Some(found) = self.records.read::<Grant>(&Records::grant(&id)).await? else {
            return Ok(());
        };
        let grant = found.value;

        let is_valid = secret.is_none_or(|secret| same(&hash(secret), &grant.refresh));
        let client = parameters.get("client_id").map(hash);
        if is_valid && client.is_none_or(|client| client == grant.client.key) {
            self.records.revoke(&id).await?;
            audit(grant.user.principal(), &grant.client, "revocation");
        }

        Ok(())
    }

    /// The grant of an access token, if this server has signed it.
    async fn session_of(&self, token: &str) -> Result<Option<String>, Problem> {
        #[derive(serde::Deserialize)]
        struct Claims {
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

        let claims = jsonwebtoken::decode::<Claims>(token, &key, &checks);
        Ok(claims.ok().map(|token| token.claims.sid))
    }
}

fn same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

/// The names that both have.
fn within(scopes: &str, allowed: &Scopes) -> String {
    let scopes = Scopes::granted(scopes);
    let names = scopes.names().filter(|name| Scopes::granted(name).is_within(allowed));
    names.collect::<Vec<_>>().join(" ")
}
