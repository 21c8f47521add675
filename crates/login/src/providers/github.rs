//! GitHub, which is no OpenID provider: its API says who a user is.

use async_trait::async_trait;
use larder_oauth::client::Tokens;
use larder_protocol::quote::shortened;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{
    ProviderOptions,
    claims::{self, refused},
    http::{Http, without_query},
    token_client::{ProviderEndpoint, TokenClient},
};
use crate::{
    Authenticated, AuthorizationRequest, IdentityProvider, Person, ProviderError, ProviderGrant,
    Redemption, Renewed, ResponseIssuer,
};

pub(super) const URL: &str = "https://github.com";
const ACCEPT: &str = "application/vnd.github+json";
/// The entries of a page, and the most pages of a list.
const PER_PAGE: usize = 100;
const MAX_PAGES: usize = 10;

/// GitHub.com, or GitHub Enterprise.
#[derive(Debug)]
pub(super) struct GitHub {
    /// Without a slash at the end.
    url: String,
    api: String,
    client: TokenClient,
    scopes: Vec<String>,
    http: Http,
}

#[derive(Deserialize)]
struct User {
    id: u64,
    login: String,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Email {
    #[serde(rename = "email")]
    address: String,
    primary: bool,
    verified: bool,
}

#[derive(Deserialize)]
struct Organization {
    login: String,
}

#[derive(Deserialize)]
struct Team {
    slug: String,
    organization: Organization,
}

impl GitHub {
    pub(super) fn new(options: ProviderOptions, http: Http) -> Self {
        let url = options.issuer().trim_end_matches('/').to_owned();
        let api = options.api_url.as_deref().map(|url| url.trim_end_matches('/').to_owned());
        let client = options.token_client();

        let mut scopes = options.scopes;
        if scopes.is_empty() {
            scopes = ["read:user", "user:email", "read:org"].map(str::to_owned).into();
        }

        let api = api.unwrap_or_else(|| api_of(&url));
        Self { url, api, client, scopes, http }
    }

    fn page(&self, path: &str) -> Result<Url, ProviderError> {
        Url::parse(&format!("{}{path}", self.url))
            .map_err(|_| refused("the URL is not valid (auth.login.issuer)"))
    }

    fn token_endpoint(&self) -> Result<Url, ProviderError> {
        self.page("/login/oauth/access_token")
    }

    fn has_scope(&self, names: &[&str]) -> bool {
        self.scopes.iter().any(|scope| names.contains(&scope.as_str()))
    }

    async fn get(&self, path: &str, access_token: &str) -> Result<Value, ProviderError> {
        let url = Url::parse(&format!("{}{path}", self.api))
            .map_err(|_| refused("the URL of the API is not valid (auth.login.api_url)"))?;
        let response = self.http.get(&url, access_token, ACCEPT).await?;
        if response.status == 200 {
            return Ok(response.body);
        }

        let message = shortened(response.body["message"].as_str().unwrap_or_default()).into_owned();
        let url = without_query(&url);
        let status = response.status;
        Err(ProviderError::Refused(format!("{url} responds with status {status}: {message}")))
    }

    /// All entries of a list.
    async fn list<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        access_token: &str,
    ) -> Result<Vec<T>, ProviderError> {
        let mut all = Vec::new();
        for page in 1..=MAX_PAGES {
            let path_of_page = format!("{path}?per_page={PER_PAGE}&page={page}");
            let entries: Vec<T> = parsed(path, self.get(&path_of_page, access_token).await?)?;
            let is_last = entries.len() < PER_PAGE;
            all.extend(entries);
            if is_last {
                return Ok(all);
            }
        }

        let most = PER_PAGE * MAX_PAGES;
        Err(ProviderError::Refused(format!("{path} lists {most} entries or more")))
    }

    async fn user(&self, access_token: &str) -> Result<Person, ProviderError> {
        let user: User = parsed("/user", self.get("/user", access_token).await?)?;
        let emails: Vec<Email> = if self.has_scope(&["user:email", "user"]) {
            self.list("/user/emails", access_token).await?
        } else {
            Vec::new()
        };

        let mut groups = Vec::new();
        if self.has_scope(&["read:org", "write:org", "admin:org"]) {
            let organizations: Vec<Organization> = self.list("/user/orgs", access_token).await?;
            groups.extend(organizations.into_iter().map(|organization| organization.login));
            let teams: Vec<Team> = self.list("/user/teams", access_token).await?;
            groups.extend(teams.iter().map(|t| format!("{}/{}", t.organization.login, t.slug)));
        }

        let primary = emails.into_iter().find(|email| email.primary);
        Ok(Person {
            issuer: self.url.clone(),
            subject: user.id.to_string(),
            email_verified: primary.as_ref().is_some_and(|email| email.verified),
            email: primary.and_then(|email| claims::email(&email.address)),
            name: Some(claims::name(&user.name.unwrap_or(user.login))),
            groups: claims::groups(groups.iter().map(String::as_str))?,
            organization: None,
        })
    }
}

/// Tokens of OAuth apps do not expire, and are asked for the user later; those of GitHub Apps
/// come with a refresh token.
fn grant(tokens: Tokens) -> ProviderGrant {
    match tokens.refresh {
        Some(refresh) => ProviderGrant { access_token: None, refresh_token: Some(refresh) },
        None => ProviderGrant { access_token: Some(tokens.access), refresh_token: None },
    }
}

#[async_trait]
impl IdentityProvider for GitHub {
    async fn authorization_url(
        &self,
        request: &AuthorizationRequest<'_>,
    ) -> Result<Url, ProviderError> {
        let page = self.page("/login/oauth/authorize")?;
        // GitHub gives no ID token.
        let request = AuthorizationRequest { nonce: None, ..*request };
        Ok(request.url(page, &self.client.id, &self.scopes.join(" ")))
    }

    async fn redeem(&self, redemption: &Redemption<'_>) -> Result<Authenticated, ProviderError> {
        let url = self.token_endpoint()?;
        let endpoint = ProviderEndpoint { url: &url, is_secret_in_body: true };
        let tokens = self.client.redeem(&self.http, endpoint, redemption).await?;
        let person = self.user(&tokens.access).await?;
        Ok(Authenticated { person, grant: Some(grant(tokens)) })
    }

    async fn renew(&self, before: &ProviderGrant) -> Result<Renewed, ProviderError> {
        let (access_token, grant) = match before {
            ProviderGrant { refresh_token: Some(refresh), .. } => {
                let url = self.token_endpoint()?;
                let endpoint = ProviderEndpoint { url: &url, is_secret_in_body: true };
                let tokens = self.client.refresh(&self.http, endpoint, refresh).await?;
                let access = tokens.access.clone();
                (access, if tokens.refresh.is_some() { grant(tokens) } else { before.clone() })
            }
            ProviderGrant { access_token: Some(access), .. } => (access.clone(), before.clone()),
            _ => return Err(refused("there is no token of the provider")),
        };

        Ok(Renewed { grant, access_token, id_token: None })
    }

    async fn person(&self, renewed: &Renewed) -> Result<Person, ProviderError> {
        self.user(&renewed.access_token).await
    }

    async fn issuer(&self) -> Result<ResponseIssuer, ProviderError> {
        Ok(ResponseIssuer { issuer: Some(format!("{}/login/oauth", self.url)), is_required: false })
    }

    async fn check(&self) -> Result<String, String> {
        let url = self.token_endpoint().map_err(|error| error.to_string())?;
        let endpoint = ProviderEndpoint { url: &url, is_secret_in_body: true };
        Ok(self.client.check(&self.http, endpoint).await?.to_owned())
    }
}

/// The API that belongs to a GitHub.
fn api_of(url: &str) -> String {
    match url.strip_prefix("https://") {
        Some("github.com") => "https://api.github.com".to_owned(),
        Some(host) if host.ends_with(".ghe.com") => format!("https://api.{host}"),
        _ => format!("{url}/api/v3"),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(path: &str, body: Value) -> Result<T, ProviderError> {
    serde_json::from_value(body)
        .map_err(|_| ProviderError::Unavailable(format!("{path}: the response cannot be parsed")))
}

#[cfg(test)]
mod tests {
    use super::api_of;

    #[test]
    fn each_github_has_its_api() {
        assert_eq!(api_of("https://github.com"), "https://api.github.com");
        assert_eq!(api_of("https://acme.ghe.com"), "https://api.acme.ghe.com");
        assert_eq!(api_of("https://git.example.com"), "https://git.example.com/api/v3");
    }
}
