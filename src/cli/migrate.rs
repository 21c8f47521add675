//! `larder migrate`: brings the store's layout up to this version.

use crate::{
    app::OpenError,
    config::Config,
    random::Random,
    redis::{Redis, layout::Layout},
};

/// Says on standard output what there is and what it did.
pub(super) async fn run(args: &super::MigrateArgs) -> Result<(), OpenError> {
    let config = Config::load(args.config.as_deref(), |config| {
        if let Some(url) = &args.store {
            config.store.url.clone_from(url);
        }
    })?;
    let Some(settings) = config.redis() else {
        println!("store.url is no Redis: there is nothing to migrate.");
        return Ok(());
    };
    let redis = Redis::open(&settings).await?;
    let layout = Layout::current();
    if args.status {
        let status = layout.status(&redis).await?;
        println!("Layout {} of {}.", status.oldest, layout.version());
        for migration in layout.missing(status.oldest) {
            println!("Missing: {migration}");
        }
        if status.newest > layout.version() {
            layout.check(&redis).await?;
        }
        return Ok(());
    }
    for migration in layout.migrate(&redis, &Random::system()).await? {
        println!("Applied {migration}");
    }
    println!("Layout {}: up to date.", layout.version());
    Ok(())
}
