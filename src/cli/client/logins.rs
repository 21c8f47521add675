//! Where the logins of this user are kept.

use std::sync::Arc;

use larder_gateway::direct::login::access_token;
use larder_runtime::{clock::SystemClock, random::Random};
use larder_server::registry::LoginSite;
use larder_store::vault::{Sealer, Vault};
use sha2::{Digest, Sha256};

use super::{
    ClientError, Endpoint,
    login_files::{self, LoginFiles},
};

/// The name of a server in its own file.
pub(in crate::cli) const NAME: &str = "server";

/// What a login at that server needs. `base_url` is where the browser comes back.
///
/// # Errors
/// The files of logins cannot be used.
pub(in crate::cli) fn site(endpoint: &Endpoint, base_url: &str) -> Result<LoginSite, ClientError> {
    let folder = login_files::folder().ok_or_else(|| {
        ClientError::Usage("There is no home directory for logins: set HOME.".into())
    })?;
    let shown = folder.display().to_string();
    let local = |error: std::io::Error| ClientError::local(&shown, &error);

    let random = Random::system();
    let key = login_files::key(&folder, || random.secret()).map_err(local)?;
    let name = Sha256::digest(endpoint.url().as_str());
    let name: String = name.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let slots = LoginFiles::open(&folder, &format!("{name}.json")).map_err(local)?;

    Ok(LoginSite {
        vault: Vault::new(Arc::new(slots), Sealer::new(&key)),
        base_url: base_url.into(),
        clock: Arc::new(SystemClock),
        random,
    })
}

/// The access token of this user's login at a server, refreshed if necessary; `None` without a
/// login.
pub(super) async fn stored_token(endpoint: &Endpoint) -> Option<String> {
    let is_known = login_files::folder().is_some_and(|folder| folder.is_dir());
    if !is_known {
        return None;
    }

    let site = site(endpoint, "http://127.0.0.1:0").ok()?;
    // Without a token, the server says what is missing.
    access_token(NAME, endpoint.url().as_str(), &site).await.ok()?
}
