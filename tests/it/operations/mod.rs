//! What an operator meets: probes, certificates, the configuration and its
//! reload, metrics, traces, and what the server does under load.

pub(crate) mod binary;
mod browsers;
mod configuration;
mod crowds;
mod deployed;
mod health;
mod https;
mod load;
mod reload;
mod shutdown;
mod telemetry;

use std::{fs, path::Path};

/// A certificate for this machine, and its key, in that folder.
fn certificate(folder: &Path) -> rcgen::Certificate {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(names).unwrap();
    fs::write(folder.join("tls.crt"), cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), signing_key.serialize_pem()).unwrap();
    cert
}
