//! What operators use: the binary, probes, certificates, the configuration and its reload,
//! metrics and traces; and how a server behaves under load and at shutdown.

mod binary;
mod browsers;
mod configuration;
#[cfg(target_os = "linux")]
mod confined;
mod crowds;
mod dashboards;
mod deployed;
mod ends;
mod floods;
mod health;
mod https;
mod labels;
mod load;
mod metrics;
mod reload;
mod rolling_restart;
mod shutdown;
mod traces;
mod upstreams;

use std::{fs, path::Path};

/// Writes a self-signed certificate for this machine and its key into a folder.
fn certificate(folder: &Path) -> rcgen::Certificate {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(names).unwrap();
    fs::write(folder.join("tls.crt"), cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), signing_key.serialize_pem()).unwrap();
    cert
}
