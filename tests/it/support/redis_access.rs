//! A Redis with TLS, and with users whose rights are limited.

use std::path::Path;

use super::{Certificates, RedisServer, free_port};

/// Options of a Redis, or of a Sentinel, that listens for TLS on a second port and uses TLS
/// towards other servers.
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

/// The user whom [`admit`] creates, as part of a URL.
pub(crate) const LOGIN: &str = "larder:s%2Fcret@";

/// Creates a user with only the rights that a server needs, and takes the right to run scripts from the
/// default user, so that a server works only as that user.
pub(crate) async fn admit(redis: &RedisServer) {
    let rules = ["on", ">s/cret", "resetkeys", "~larder:*", "resetchannels", "&larder:*"];
    let commands = ["-@all", "+@all", "-@admin", "-@dangerous", "+info"];
    redis.command(&[&["ACL", "SETUSER", "larder"], &rules[..], &commands].concat()).await;
    redis.command(&["ACL", "SETUSER", "default", "-@scripting"]).await;
}
