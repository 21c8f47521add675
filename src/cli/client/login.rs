//! `larder upstreams login` and `larder upstreams logout`

use std::time::Duration;

use clap::{Args, Subcommand};
use reqwest::Method;
use tokio::time::Instant;

use super::{ClientError, McpClient, ServerArgs, print, print_text};

/// How long a login may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// The interval at which the server is asked whether the login is done.
const POLL: Duration = Duration::from_secs(1);

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum LoginCommand {
    /// Log in at an upstream of a running server: print the link to open in a
    /// browser, and wait until that is done.
    Login(LoginArgs),
    /// Log out at an upstream of a running server: forget the tokens, and revoke
    /// them.
    Logout(LoginArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct LoginArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The name of the upstream.
    name: String,
}

pub(in crate::cli) async fn run(command: LoginCommand) -> Result<(), ClientError> {
    match command {
        LoginCommand::Login(args) => log_in(args).await,
        LoginCommand::Logout(LoginArgs { server, name }) => {
            McpClient::new(server).await?.account(&name, Method::DELETE).await?;
            print(format!("Logged out of {name}.\n").as_bytes())
        }
    }
}

async fn log_in(LoginArgs { server, name }: LoginArgs) -> Result<(), ClientError> {
    let client = McpClient::new(server).await?;
    let is_logged_in = async || {
        let account = client.account(&name, Method::GET).await?;
        account["logged_in"].as_bool().ok_or_else(ClientError::unexpected_reply)
    };

    if is_logged_in().await? {
        return print(format!("You are logged in to {name}.\n").as_bytes());
    }

    let account = client.account(&name, Method::POST).await?;
    let link = account["url"].as_str().ok_or_else(ClientError::unexpected_reply)?;
    print_text(&format!("Open this link in a browser: {link}\n"))?;

    let deadline = Instant::now() + PATIENCE;
    while !is_logged_in().await? {
        if Instant::now() >= deadline {
            return Err(ClientError::Failed(format!("{name}: the login took too long.")));
        }
        tokio::time::sleep(POLL).await;
    }

    print(format!("Logged in to {name}.\n").as_bytes())
}
