//! `larder migrate`: migrates the data in Redis to the layout of this version.

use clap::Args;
use larder_runtime::random::Random;
use larder_store::redis::{Redis, layout::Layout};

use super::{ServeArgs, args::file, client::say};
use crate::{app::OpenError, config::StoreUrl, telemetry};

#[derive(Debug, Clone, Args)]
pub(super) struct MigrateArgs {
    /// The store of resources (store.url).
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// A configuration file in TOML.
    #[arg(long, value_name = "FILE", env = "LARDER_CONFIG", value_parser = file())]
    config: Option<std::path::PathBuf>,
    /// Only print the layout and the missing migrations.
    #[arg(long)]
    status: bool,
}

/// Prints the layout and the migrations it applies.
pub(super) async fn run(args: &MigrateArgs) -> Result<(), OpenError> {
    telemetry::init(&telemetry::Options::default());
    let MigrateArgs { store, config, .. } = args.clone();
    let config = ServeArgs { store, config, ..ServeArgs::default() }.configure()?;

    let StoreUrl::Redis(url) = config.store.place()? else {
        say("store.url is not Redis: there is nothing to migrate.");
        return Ok(());
    };

    let redis = Redis::open(&config.redis.settings(url)).await?;
    let layout = Layout::current();

    if args.status {
        let status = layout.status(&redis).await?;
        say(&format!("Layout {} of {}.", status.oldest, layout.version()));
        for migration in layout.missing(status.oldest) {
            say(&format!("Missing: {migration}"));
        }
        if status.newest > layout.version() {
            layout.check(&redis).await?;
        }
        return Ok(());
    }

    for migration in layout.migrate(&redis, &Random::system()).await? {
        say(&format!("Applied {migration}"));
    }
    say(&format!("Layout {}: up to date.", layout.version()));
    Ok(())
}
