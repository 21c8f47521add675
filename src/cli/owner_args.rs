//! The owner that a command of an operator is about.

use clap::Args;
use larder_oauth::{Owner, Principal};

use super::client::ClientError;

/// An owner, by name or by the principal.
#[derive(Debug, Args)]
pub(super) struct OwnerArgs {
    /// The owner, as `larder admin owners` lists it; `local` without authentication.
    #[arg(conflicts_with_all = ["issuer", "static_token"])]
    owner: Option<String>,
    /// The issuer of the tokens of a user or a client.
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// The subject of the user's tokens.
    #[arg(long, value_name = "SUB", requires = "issuer", conflicts_with = "client")]
    subject: Option<String>,
    /// The ID of a client that acts on its own behalf.
    #[arg(long, value_name = "ID", requires = "issuer")]
    client: Option<String>,
    /// The name of a token in the configuration.
    #[arg(long = "static", value_name = "NAME", conflicts_with = "issuer")]
    static_token: Option<String>,
}

impl OwnerArgs {
    /// The owner, if one is given.
    pub(super) fn owner(self) -> Result<Option<Owner>, ClientError> {
        let issuer = self.issuer.map(Into::into);
        let principal = match (issuer, self.subject, self.client, self.static_token) {
            (Some(issuer), Some(subject), ..) => {
                Principal::User { issuer, subject: subject.into() }
            }
            (Some(issuer), _, Some(client), _) => {
                Principal::Machine { issuer, client: client.into() }
            }
            (Some(_), ..) => {
                let problem = "--issuer needs --subject or --client";
                return Err(ClientError::Usage(problem.into()));
            }
            (None, _, _, Some(name)) => Principal::Static { name: name.into() },
            _ => return Ok(self.owner.map(Owner::new)),
        };

        Ok(Some(principal.owner()))
    }
}

/// The error for a command that needs an owner.
pub(super) fn no_owner(command: &str) -> ClientError {
    ClientError::Usage(format!(
        "Give the owner: see `larder admin {command}`, or --issuer and --subject."
    ))
}
