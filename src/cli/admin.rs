//! `larder admin`: what an operator does with the store of all owners.

use std::io::Write;

use clap::{Args, Subcommand};

use super::{
    client::{ClientError, print},
    stored::StoreArgs,
};
use crate::{
    auth::{Owner, Principal, audit},
    preview::words::number,
    quote::visible,
    store::{Store, StoreError, Usage},
};

/// How many owners are listed at a time.
const PAGE: usize = 256;

#[derive(Debug, Subcommand)]
pub(super) enum AdminCommand {
    /// List owners with the number of their resources and the bytes that they count.
    Owners {
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Show what all owners together have stored, or one owner and the quota.
    Usage {
        #[command(flatten)]
        who: Who,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Delete everything that an owner has stored.
    Purge {
        #[command(flatten)]
        who: Who,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// An owner, by name or by the principal.
#[derive(Debug, Args)]
pub(super) struct Who {
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

impl Who {
    /// The owner, if one is given.
    fn owner(self) -> Result<Option<Owner>, ClientError> {
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

pub(super) async fn run(command: AdminCommand) -> Result<(), ClientError> {
    match command {
        AdminCommand::Owners { store } => owners(&store.open().await?).await,
        AdminCommand::Usage { who, store } => {
            let owner = who.owner()?;
            usage(&store.open().await?, owner).await
        }
        AdminCommand::Purge { who, yes, store } => {
            let Some(owner) = who.owner()? else {
                let problem =
                    "Give the owner: see `larder admin owners`, or --issuer and --subject.";
                return Err(ClientError::Usage(problem.into()));
            };
            purge(&store.open().await?, &owner, yes).await
        }
    }
}

async fn owners(store: &Store) -> Result<(), ClientError> {
    let mut after = None;
    loop {
        let page = store.owners(after.as_deref(), PAGE).await.map_err(|error| failed(&error))?;
        for owner in &page.owners {
            let Usage { resources, bytes, .. } =
                store.usage_of(owner).await.map_err(|error| failed(&error))?;
            if resources > 0 {
                let owner = visible(owner.as_str());
                print(format!("{owner}\t{resources}\t{bytes}\n").as_bytes())?;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

async fn usage(store: &Store, owner: Option<Owner>) -> Result<(), ClientError> {
    let text = if let Some(owner) = owner {
        let Usage { resources, bytes, .. } =
            store.usage_of(&owner).await.map_err(|error| failed(&error))?;
        let quota = store.quota();
        format!(
            "{}: {} of {} resources, {} of {} bytes\n",
            visible(owner.as_str()),
            number(resources),
            number(quota.resources),
            number(bytes),
            number(quota.bytes)
        )
    } else {
        let Usage { resources, bytes, .. } = store.usage().await.map_err(|error| failed(&error))?;
        format!("all owners: {} resources, {} bytes\n", number(resources), number(bytes))
    };
    print(text.as_bytes())
}

async fn purge(store: &Store, owner: &Owner, yes: bool) -> Result<(), ClientError> {
    let Usage { resources, bytes, .. } =
        store.usage_of(owner).await.map_err(|error| failed(&error))?;
    let name = visible(owner.as_str());
    if !yes {
        eprint!(
            "{name} has {} resources, {} bytes, in the {} store. Delete all of them? [y/N] ",
            number(resources),
            number(bytes),
            store.backend_name()
        );
        let _ = std::io::stderr().flush();
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        read.map_err(|error| ClientError::local("standard input", &error))?;
        if !matches!(answer.trim(), "y" | "Y" | "yes") {
            return Err(ClientError::Failed("Nothing was deleted.".into()));
        }
    }
    let deleted = store.purge(owner).await;
    audit::purged(owner, &deleted);
    let deleted = deleted.map_err(|error| failed(&error))?;
    print(format!("Deleted {} resources of {name}.\n", number(deleted)).as_bytes())
}

fn failed(error: &StoreError) -> ClientError {
    let cause = std::error::Error::source(error);
    ClientError::Failed(
        cause.map_or_else(|| error.to_string(), |cause| format!("{error} ({cause})")),
    )
}
