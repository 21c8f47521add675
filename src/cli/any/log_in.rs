//! `larder login` and `larder logout`

use std::{collections::BTreeMap, time::Duration};

use clap::Args;
use larder_gateway::{
    LoginIssuer, OAuth, Remote, RemoteAuth, Settings,
    direct::{Direct, DirectError, DirectLogin, login},
};
use larder_server::registry::{LoginProblem, LoginRedirect};
use serde_json::json;
use tokio::net::TcpListener;

use super::callback::Callback;
use crate::cli::client::{
    ClientError, Endpoint, McpClient, ServerArgs, logins, open_browser, page, print, print_text,
};

/// How long a login may take.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Debug, Args)]
pub(in crate::cli) struct LoginArgs {
    /// The URL of the server.
    url: String,
    /// The client ID that the authorization server has for you, if it registers no clients.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// A scope to ask for; may be repeated. By default those that the server demands.
    #[arg(long = "scope", value_name = "SCOPE")]
    scopes: Vec<String>,
    /// Only print the link.
    #[arg(long)]
    no_browser: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LogoutArgs {
    /// The URL of the server.
    url: String,
}

pub(super) async fn log_in(args: LoginArgs) -> Result<(), ClientError> {
    let endpoint = Endpoint::of_any_server(&args.url).map_err(ClientError::Usage)?;
    let local = |error: std::io::Error| ClientError::local("127.0.0.1", &error);
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(local)?;
    let name = logins::name(&endpoint);
    let port = listener.local_addr().map_err(local)?.port();
    let site = logins::site(&endpoint, &format!("http://127.0.0.1:{port}"))?;

    let oauth =
        OAuth { issuer: LoginIssuer::Named { client_id: args.client_id }, scopes: args.scopes };
    let remote = Remote {
        url: endpoint.url().to_string(),
        auth: Some(RemoteAuth::Login(oauth)),
        ..Remote::default()
    };
    let settings = Settings::new(name.clone(), remote);

    let shown = endpoint.shown();
    let login = match Direct::open(settings, &json!({}), Some(&site)).await {
        Ok(direct) => {
            direct.close().await;
            return print(format!("{shown} needs no login now.\n").as_bytes());
        }
        Err(DirectError::Login(login)) => login,
        Err(error) => return Err(unusable(&endpoint, &error).await),
    };

    let redirect = login.begin().await.map_err(|problem| told(&problem))?;
    let link = page(&redirect.url).ok_or_else(|| {
        ClientError::Denied(format!("The page of the login is no web page: {}", redirect.url))
    })?;
    print_text(&format!("Open this link in a browser: {link}\n"))?;
    if !args.no_browser {
        // Some browsers run as long as their windows are open.
        tokio::task::spawn_blocking(move || open_browser(&link));
    }

    let callback = Callback::new(listener, &format!("/upstreams/{name}/callback"));
    let finished = tokio::time::timeout(PATIENCE, finish(callback, &login, &redirect));
    match finished.await {
        Ok(finished) => finished?,
        Err(_) => return Err(ClientError::Failed("The login took too long.".into())),
    }
    print(format!("Logged in to {shown}.\n").as_bytes())
}

/// Waits for the browser, and ends the login.
async fn finish(
    mut callback: Callback,
    login: &DirectLogin,
    redirect: &LoginRedirect,
) -> Result<(), ClientError> {
    loop {
        let mut visit = callback.wait().await;
        let finished = login.finish(visit.take_parameters(), &redirect.cookie).await;
        let told_page = match &finished {
            Ok(()) => "You are logged in. You can close this page.".to_owned(),
            Err(problem) => problem.to_string(),
        };
        visit.answer(&told_page).await;

        match finished {
            Ok(()) => return Ok(()),
            // A page that knows no code must not end the login of the person.
            Err(LoginProblem::Unknown(_)) => {}
            Err(problem) => return Err(told(&problem)),
        }
    }
}

fn told(problem: &LoginProblem) -> ClientError {
    ClientError::Denied(match problem {
        LoginProblem::NoClient(reason) => format!("{reason}: give --client-id ID"),
        other => other.to_string(),
    })
}

/// Why a server cannot be logged in to.
async fn unusable(endpoint: &Endpoint, error: &DirectError) -> ClientError {
    let args = ServerArgs::new(endpoint.url().to_string());
    if let Some(error @ ClientError::Unreachable(_)) =
        McpClient::diagnose(endpoint, &args, &BTreeMap::new()).await
    {
        return error;
    }
    ClientError::Failed(format!("{}: {error}", endpoint.shown()))
}

pub(super) async fn log_out(args: LogoutArgs) -> Result<(), ClientError> {
    let endpoint = Endpoint::of_any_server(&args.url).map_err(ClientError::Usage)?;
    let site = logins::site(&endpoint, "http://127.0.0.1:0")?;

    login::log_out(&logins::name(&endpoint), endpoint.url().as_str(), &site)
        .await
        .map_err(|problem| ClientError::Failed(problem.to_string()))?;
    print(format!("Logged out of {}.\n", endpoint.shown()).as_bytes())
}
