//! Refresh tokens: each is used once, but the processes of one host may use it at the same time.
//!
//! A refresh token's secret follows from the one before it and a salt of the grant. So whoever has
//! a token that was replaced a moment ago gets the newest one, and nothing that is kept gives a
//! token to anybody else.

use std::time::Duration;

use larder_oauth::Scopes;
use larder_runtime::clock::Timestamp;
use serde_json::Value;

use super::{
    ErrorCode, LoginServer, Problem, ProviderError,
    client::hash,
    parameters::Parameters,
    records::{Grant, Records, Replaced, Versioned},
    refresh_token::RefreshToken,
    scopes::within,
    server::{audit, audit_refused},
    tokens::{TokenFailure, same},
};

/// How long one request may take to refresh, before another one tries.
const LEASE: Duration = Duration::from_secs(30);
/// How long a token that was replaced gives the newest one. After that, its use ends the login.
const GRACE: Duration = Duration::from_secs(30);
/// How many replaced tokens are remembered for that long.
const MAX_REPLACED: usize = 8;
/// How often a request looks whether another one has refreshed the tokens.
const POLL: Duration = Duration::from_millis(100);
/// How often it looks at most.
const POLLS: usize = 100;

/// A refresh token in relation to its grant.
enum Presented {
    /// The newest one.
    Newest,
    /// One that was replaced a moment ago. The newest one has this secret.
    Before(String),
    /// Another one.
    Other,
}

impl Grant {
    /// Finds the relation of the token with this secret.
    fn presented(&self, secret: &str, now: Timestamp) -> Presented {
        let presented = hash(secret);
        if same(&presented, &self.refresh) {
            return Presented::Newest;
        }

        let found = self.replaced.iter().position(|replaced| same(&presented, &replaced.hash));
        let Some(found) = found else { return Presented::Other };
        let since = &self.replaced[found..];
        if since.first().is_none_or(|replaced| now.since(replaced.at) > GRACE) {
            return Presented::Other;
        }

        let mut newest = secret.to_owned();
        for Replaced { salt, .. } in since {
            newest = next_secret(&newest, salt);
        }
        Presented::Before(newest)
    }

    /// Whether the token with this secret gives tokens.
    pub(super) fn accepts(&self, secret: &str, now: Timestamp) -> bool {
        !matches!(self.presented(secret, now), Presented::Other)
    }

    /// Replaces the secret. Returns the new one.
    fn replace(&mut self, secret: &str, salt: String, now: Timestamp) -> String {
        self.replaced.retain(|replaced| now.since(replaced.at) <= GRACE);
        if self.replaced.len() >= MAX_REPLACED {
            self.replaced.remove(0);
        }

        let next = next_secret(secret, &salt);
        self.replaced.push(Replaced { hash: hash(secret), salt, at: now });
        self.refresh = hash(&next);
        next
    }
}

/// The secret after this one.
fn next_secret(secret: &str, salt: &str) -> String {
    hash(&format!("{salt} {secret}"))
}

impl LoginServer {
    /// Answers a request with a refresh token. `client` is the key of the client that sends it.
    pub(super) async fn refresh(
        &self,
        client: &str,
        parameters: &Parameters,
    ) -> Result<Value, TokenFailure> {
        let token = parameters.required("refresh_token")?;
        let RefreshToken { grant: id, secret } = RefreshToken::parse(token).ok_or_else(invalid)?;

        // Another request of the same client may be refreshing the tokens.
        for _ in 0..POLLS {
            if let Some(answer) = self.try_refresh(client, id, secret, parameters).await? {
                return Ok(answer);
            }
            tokio::time::sleep(POLL).await;
        }
        Err(Problem::Unavailable(Duration::from_secs(1)).into())
    }

    /// Answers, unless another request is refreshing the tokens.
    async fn try_refresh(
        &self,
        client: &str,
        id: &str,
        secret: &str,
        parameters: &Parameters,
    ) -> Result<Option<Value>, TokenFailure> {
        let name = Records::grant(id);
        let found = self.records.read::<Grant>(&name).await?;
        let mut found = found.ok_or_else(invalid)?;
        if found.value.client.key != client {
            return Err(invalid().into());
        }

        let now = self.clock.now();
        match found.value.presented(secret, now) {
            Presented::Newest => {}
            Presented::Before(newest) => {
                return self.repeated(id, &newest, &found.value, parameters).await.map(Some);
            }
            Presented::Other => {
                // Either the client or a thief has used this token before and has the newer token.
                let why = "a refresh token was used twice, so all its tokens are revoked";
                return Err(self.end(id, &found.value, invalid(), why).await?);
            }
        }

        if !found.value.refreshing_until.take(now, LEASE) {
            return Ok(None);
        }
        if self.is_over(&mut found.value) {
            let text = "The login has lasted as long as this server allows. Log in again.";
            let why = "auth.login.reauthenticate is over";
            return Err(self.end(id, &found.value, Problem::grant(text), why).await?);
        }

        let scopes = self.narrowed(&found.value, parameters)?;
        let ttl = self.lifetime(&found.value);
        if !self.records.update(&name, &mut found, ttl).await? {
            // Another request has the lease now.
            return Ok(None);
        }

        match self.ask_again(&name, &mut found).await {
            Ok(()) => {}
            Err(problem @ Problem::Refused(..)) => {
                let why = "the provider or the policy no longer allows the user";
                return Err(self.end(id, &found.value, problem, why).await?);
            }
            Err(problem) => {
                found.value.refreshing_until.release();
                let ttl = self.lifetime(&found.value);
                self.records.update(&name, &mut found, ttl).await?;
                return Err(problem.into());
            }
        }

        self.replaced(id, secret, &scopes, &mut found, parameters).await.map(Some)
    }

    /// Answers a request with a token that was replaced a moment ago: with the newest tokens, or
    /// with an access token of its own if the newest one has other scopes than it asks for.
    async fn repeated(
        &self,
        id: &str,
        newest: &str,
        grant: &Grant,
        parameters: &Parameters,
    ) -> Result<Value, TokenFailure> {
        let scopes = self.narrowed(grant, parameters)?;

        let token = match &grant.latest {
            Some(latest) if latest.scopes == scopes => latest.clone(),
            _ => {
                let narrowed = Grant { scopes, ..grant.clone() };
                self.issued(id, &narrowed, parameters.required("client_id")?).await?
            }
        };

        audit(grant.user.principal(), &grant.client, "refresh");
        Ok(self.response(&token, id, newest))
    }

    /// Gives a grant new tokens. Returns the response.
    async fn replaced(
        &self,
        id: &str,
        secret: &str,
        scopes: &str,
        found: &mut Versioned<Grant>,
        parameters: &Parameters,
    ) -> Result<Value, TokenFailure> {
        // The policy may grant other scopes than before.
        let grant = &mut found.value;
        let allowed = self.grantable(&grant.user.person).unwrap_or_default();
        grant.scopes = within(&grant.scopes, &allowed);

        let now = self.clock.now();
        let newest = grant.replace(secret, self.secret(), now);
        grant.refreshing_until.release();

        let issued = Grant { scopes: within(scopes, &allowed), ..grant.clone() };
        let token = self.issued(id, &issued, parameters.required("client_id")?).await?;
        grant.latest = Some(token.clone());

        let ttl = self.lifetime(&found.value);
        if !self.records.update(&Records::grant(id), found, ttl).await? {
            // The grant was revoked meanwhile.
            return Err(invalid().into());
        }

        // A failure is harmless, because the next refresh marks the client again.
        let _ = self.records.mark_used(&found.value.client.key, now).await;
        audit(found.value.user.principal(), &found.value.client, "refresh");
        Ok(self.response(&token, id, &newest))
    }

    /// Ends a login. Returns what the client is told.
    async fn end(
        &self,
        id: &str,
        grant: &Grant,
        problem: Problem,
        why: &str,
    ) -> Result<TokenFailure, Problem> {
        self.records.revoke(id).await?;
        audit_refused(grant.user.principal(), &grant.client, "refresh", why);
        Ok(TokenFailure { problem, is_audited: true })
    }

    /// Whether a login has lasted too long at a provider that cannot be asked whether its user is
    /// still one.
    fn is_over(&self, grant: &mut Grant) -> bool {
        if grant.user.grant.is_some() {
            return false;
        }
        // A login of an earlier version begins to count now.
        let since = *grant.since.get_or_insert(self.clock.now());
        self.clock.now().since(since) >= self.options.reauthenticate
    }

    /// How long a grant is kept that is not refreshed.
    pub(super) fn lifetime(&self, grant: &Grant) -> Duration {
        let ttl = self.grant_ttl(grant);
        match (grant.since, &grant.user.grant) {
            (Some(since), None) => {
                let age = self.clock.now().since(since);
                // One second more, so that a refresh at the end says why it is refused.
                let left = self.options.reauthenticate.saturating_sub(age);
                ttl.min(left + Duration::from_secs(1))
            }
            _ => ttl,
        }
    }

    /// A client may ask for fewer scopes, for this access token.
    fn narrowed(&self, grant: &Grant, parameters: &Parameters) -> Result<String, Problem> {
        let Some(scope) = parameters.get("scope") else { return Ok(grant.scopes.clone()) };
        let asked = within(scope, &self.known_scopes());
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
}

fn invalid() -> Problem {
    Problem::grant("The refresh token is not valid. Log in again.")
}
