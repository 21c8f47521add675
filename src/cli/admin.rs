//! `larder admin`: what an operator does with the store of all owners.

use clap::Subcommand;
use larder_oauth::{Owner, audit};
use larder_protocol::quote::visible;
use larder_records::words::number;
use larder_store::store::{Store, StoreError, Usage};

use super::{
    client::{ClientError, print},
    confirm::confirm,
    owner_args::{OwnerArgs, no_owner},
    sessions,
    stored::StoreArgs,
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
        args: OwnerArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Delete everything that an owner has stored.
    Purge {
        #[command(flatten)]
        args: OwnerArgs,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// List owners with the number of their sessions, or count or end those of one owner.
    Sessions {
        #[command(flatten)]
        args: OwnerArgs,
        /// End all sessions of the owner, and their streams.
        #[arg(long)]
        end: bool,
        /// Do not ask.
        #[arg(long, requires = "end")]
        yes: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
}

pub(super) async fn run(command: AdminCommand) -> Result<(), ClientError> {
    match command {
        AdminCommand::Owners { store } => owners(&store.open_existing().await?).await,
        AdminCommand::Usage { args, store } => {
            let owner = args.owner()?;
            usage(&store.open_existing().await?, owner).await
        }
        AdminCommand::Purge { args, yes, store } => {
            let Some(owner) = args.owner()? else {
                return Err(no_owner("owners"));
            };
            purge(&store.open_existing().await?, &owner, yes).await
        }
        AdminCommand::Sessions { args, end, yes, store } => match (args.owner()?, end) {
            (None, true) => Err(no_owner("sessions")),
            (None, false) => sessions::list(&store.open_sessions().await?).await,
            (Some(owner), false) => sessions::count(&store.open_sessions().await?, &owner).await,
            (Some(owner), true) => sessions::end(&store.open_sessions().await?, &owner, yes).await,
        },
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
        let question = format!(
            "{name} has {} resources, {} bytes, in the {} store. Delete all of them?",
            number(resources),
            number(bytes),
            store.backend_name()
        );
        if !confirm(&question)? {
            return Err(ClientError::Failed("Nothing was deleted.".into()));
        }
    }

    let deleted = store.purge(owner).await;
    audit::purged(&"operator", owner, &deleted);
    let deleted = deleted.map_err(|error| failed(&error))?;
    print(format!("Deleted {} resources of {name}.\n", number(deleted)).as_bytes())
}

fn failed(error: &StoreError) -> ClientError {
    let cause = std::error::Error::source(error);
    ClientError::Failed(
        cause.map_or_else(|| error.to_string(), |cause| format!("{error} ({cause})")),
    )
}
