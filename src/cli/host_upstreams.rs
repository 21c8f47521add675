//! Upstreams over stdio, which behave as if the host of Larder had started them itself: they have
//! its environment, and end with it.

use std::collections::BTreeSet;

use larder_gateway::{Inherited, Settings, Target};
use larder_runtime::environment;

use super::named::NamedUpstreams;
use crate::config::{Config, UpstreamConfig};

/// Variables that are no secrets, even where a setting fills them in.
const COMMON: [&str; 8] = ["PATH", "HOME", "LANG", "TMPDIR", "USER", "LOGNAME", "SHELL", "TERM"];

/// The schemes of buckets, with the beginning of the names of their credentials.
const BUCKETS: [(&str, &str); 3] = [("s3:", "AWS_"), ("gs:", "GOOGLE_"), ("az:", "AZURE_")];

/// Gives the upstreams the environment of the host, without the secrets of Larder.
pub(super) fn adopt<'a>(
    upstreams: impl Iterator<Item = &'a mut Settings>,
    config: &Config,
    named: &NamedUpstreams,
) {
    let secrets = secrets(config, named);
    for upstream in upstreams {
        upstream.idle = None;
        if let Target::Command(command) = &mut upstream.target {
            command.inherits = Inherited::AllBut(secrets.clone());
        }
    }
}

/// The variables that only Larder reads. Larder's settings are not among them: no program inherits
/// them.
fn secrets(config: &Config, named: &NamedUpstreams) -> BTreeSet<String> {
    let of_settings = config.upstreams.iter().flat_map(UpstreamConfig::variables);
    let of_headers = named.header_variables().map(str::to_owned);
    let mut secrets: BTreeSet<_> = of_settings.chain(of_headers).collect();
    secrets.retain(|name| !COMMON.contains(&name.as_str()));
    secrets.extend(config.secret_variables().map(str::to_owned));

    let places = [Some(&config.store.url), config.store.blobs.as_ref()];
    for (scheme, beginning) in BUCKETS {
        if places.iter().flatten().any(|place| place.starts_with(scheme)) {
            let names = environment::variables().map(|(name, _)| name);
            secrets.extend(names.filter(|name| name.starts_with(beginning)));
        }
    }
    secrets
}
