//! What keeps others out of a Redis: TLS, and users.

use std::path::Path;

use super::{Certificates, RedisServer, free_port};

/// Options of a Redis, or of a Sentinel, that takes TLS on a port of its own and speaks nothing
/// else with its like.
pub(crate) fn encrypted(certificates: &Certificates) -> Vec<String> {
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    [
        ("--tls-port", free_port().to_string()),
        ("--tls-cert-file", path(&certificates.certificate())),
        ("--tls-key-file", path(&certificates.key())),
        ("--tls-ca-cert-file", path(&certificates.authority())),
        ("--tls-auth-clients", "no".to_owned()),
        ("--tls-replication", "yes".to_owned()),
        ("--tls-cluster", "yes".to_owned()),
    ]
    .into_iter()
    .flat_map(|(name, value)| [name.to_owned(), value])
    .collect()
}

/// How a URL names the user whom [`admit`] lets in.
pub(crate) const LOGIN: &str = "larder:s%2Fcret@";

/// Lets in a user who may do what the README says; nobody else can do what a server has to.
pub(crate) async fn admit(redis: &RedisServer) {
    let rules = ["on", ">s/cret", "resetkeys", "~larder:*", "resetchannels", "&larder:*"];
    let commands = ["-@all", "+@all", "-@admin", "-@dangerous", "+info"];
    redis.command(&[&["ACL", "SETUSER", "larder"], &rules[..], &commands].concat()).await;
    redis.command(&["ACL", "SETUSER", "default", "-@scripting"]).await;
}
