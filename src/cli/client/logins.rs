//! The files with the logins of this user.

use std::{io, path::Path, sync::Arc};

use larder_gateway::{Settings, direct::login::access_token};
use larder_runtime::{clock::SystemClock, hex::hex, random::Random};
use larder_server::registry::LoginSite;
use larder_store::vault::{Sealer, Vault};
use sha2::{Digest, Sha256};

use super::{
    ClientError, Endpoint,
    login_files::{self, LoginFiles},
};

/// The address where no browser comes back, for a command that begins no login.
const NOWHERE: &str = "http://127.0.0.1:0";

/// The name of a server in its own file, and in messages.
pub(in crate::cli) fn name(endpoint: &Endpoint) -> String {
    Settings::name_of_url(endpoint.url().as_str())
}

/// The login at that server, with the files that keep it. `base_url` is where the
/// browser comes back.
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
    in_folder(&folder, &key, endpoint, base_url, random).map_err(local)
}

/// This user's login at that server, if this user has logged in anywhere. Nothing is written: a
/// server that needs no login can be used without a home directory.
pub(in crate::cli) fn known_site(endpoint: &Endpoint) -> Option<LoginSite> {
    let folder = login_files::folder()?;
    let key = login_files::known_key(&folder)?;
    in_folder(&folder, &key, endpoint, NOWHERE, Random::system()).ok()
}

fn in_folder(
    folder: &Path,
    key: &[u8],
    endpoint: &Endpoint,
    base_url: &str,
    random: Random,
) -> io::Result<LoginSite> {
    let name = Sha256::digest(endpoint.url().as_str());
    let name = hex(&name[..16]);
    let slots = LoginFiles::open(folder, &format!("{name}.json"))?;

    Ok(LoginSite {
        vault: Vault::new(Arc::new(slots), Sealer::new(key)),
        base_url: base_url.into(),
        clock: Arc::new(SystemClock),
        random,
    })
}

/// The access token of this user's login at a server, refreshed if necessary; `None` without a
/// login.
pub(super) async fn stored_token(endpoint: &Endpoint) -> Option<String> {
    let site = known_site(endpoint)?;
    // Without a token, the server says what is missing.
    access_token(&name(endpoint), endpoint.url().as_str(), &site).await.ok()?
}
