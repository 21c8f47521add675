//! The preset for Microsoft Entra ID.

use larder_protocol::quote::quoted;
use serde_json::{Value, json};
use url::Url;

use super::{
    claims::{self, Claims, refused},
    discovery::ProviderMetadata,
    http::Http,
};
use crate::ProviderError;

/// The tenant of all personal accounts, whose addresses nobody has proven.
const PERSONAL_ACCOUNTS: &str = "9188040d-6c67-4c5b-b112-36a304b66dad";

/// The issuer of a tenant, in the global cloud.
pub(super) fn issuer(tenant: &str) -> String {
    format!("https://login.microsoftonline.com/{tenant}/v2.0")
}

/// The specifics of Entra.
#[derive(Debug)]
pub(super) struct Entra {
    pub(super) tenant: Option<String>,
    /// The URL of Microsoft Graph, if it is not that of the metadata.
    pub(super) graph: Option<String>,
}

impl Entra {
    /// The tenant of the user.
    ///
    /// # Errors
    /// If it is not the configured one.
    pub(super) fn organization(&self, claims: &Claims) -> Result<Option<String>, ProviderError> {
        let theirs = claims.text("tid");
        if let Some(ours) = &self.tenant
            && !theirs.is_some_and(|theirs| theirs.eq_ignore_ascii_case(ours))
        {
            let theirs = quoted(theirs.unwrap_or_default());
            let problem =
                format!("the account is of the tenant {theirs}, not of auth.login.tenant");
            return Err(ProviderError::Refused(problem));
        }

        Ok(theirs.map(str::to_owned))
    }

    /// The email address, and whether it is verified.
    ///
    /// `email` is whatever an administrator or the user has entered, unless the domain's owner is
    /// verified (`xms_edov`). The domain of a user principal name is one that a tenant has proven
    /// to own.
    pub(super) fn email(claims: &Claims) -> (Option<String>, bool) {
        if claims.is_true("xms_edov") || claims.is_true("email_verified") {
            return (claims.email("email"), true);
        }

        if claims.text("tid") != Some(PERSONAL_ACCOUNTS)
            && let Some(name) = claims.email("preferred_username")
        {
            return (Some(name), true);
        }

        (claims.email("email"), false)
    }

    /// The groups of the claim. If there are too many for a token, Microsoft Graph lists them.
    ///
    /// # Errors
    /// [`ProviderError`].
    pub(super) async fn groups(
        &self,
        claims: &Claims,
        claim: &str,
        access_token: &str,
        metadata: &ProviderMetadata,
        http: &Http,
    ) -> Result<Vec<String>, ProviderError> {
        let is_overage = claim == "groups"
            && (claims.is_true("hasgroups")
                || claims.0.get("_claim_names").is_some_and(|names| names.get("groups").is_some()));
        if !is_overage {
            return claims.groups(claim);
        }

        // The endpoint in `_claim_sources` belongs to an API that was shut down.
        let url = self.graph(metadata)?;
        let body = json!({ "securityEnabledOnly": true });
        let response = http.post(&url, access_token, &body).await?;

        let list = response.body["value"].as_array().filter(|_| response.status == 200);
        let Some(list) = list else {
            let problem = format!(
                "the user has more groups than a token lists, and {url} responds with status {}: \
                 grant the application the delegated permission User.Read of Microsoft Graph, and \
                 add it to auth.login.scopes",
                response.status
            );
            return Err(ProviderError::Refused(problem));
        };

        claims::groups(list.iter().filter_map(Value::as_str))
    }

    fn graph(&self, metadata: &ProviderMetadata) -> Result<Url, ProviderError> {
        let base = match (&self.graph, &metadata.document.msgraph_host) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, Some(host)) => format!("https://{host}"),
            (None, None) => "https://graph.microsoft.com".to_owned(),
        };

        Url::parse(&format!("{base}/v1.0/me/getMemberObjects"))
            .map_err(|_| refused("the URL of Microsoft Graph is not valid (auth.login.api_url)"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_address_that_anybody_could_enter_is_not_verified() {
        let email = |token: Value| Entra::email(&Claims::of(&token));
        let ceo = "ceo@example.com";
        let mallory = "mallory@evil.example";

        assert_eq!(email(json!({ "email": ceo })), (Some(ceo.into()), false));
        let entered = json!({ "email": ceo, "preferred_username": mallory });
        assert_eq!(email(entered), (Some(mallory.into()), true));
        let proven = json!({ "email": ceo, "xms_edov": true, "preferred_username": mallory });
        assert_eq!(email(proven), (Some(ceo.into()), true));

        let personal = json!({ "preferred_username": ceo, "tid": PERSONAL_ACCOUNTS });
        assert_eq!(email(personal), (None, false));
        assert_eq!(email(json!({ "preferred_username": "+15550100" })), (None, false));
    }

    #[test]
    fn the_tenant_is_that_of_the_claim() {
        let entra = Entra { tenant: Some("7a1b".into()), graph: None };
        assert!(entra.organization(&Claims::of(&json!({ "tid": "7A1B" }))).is_ok());
        assert!(entra.organization(&Claims::of(&json!({ "tid": "7a1c" }))).is_err());
        assert!(entra.organization(&Claims::of(&json!({}))).is_err());
    }
}
