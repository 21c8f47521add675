//! Downloads while the object store does not answer, or cuts its answers.

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{Client, Method, StatusCode, Version};
use sha2::{Digest, Sha256};

use super::{get, hex, hex_of, request, resource};
use crate::support::{
    Answer, Network, S3Server, noise, patiently,
    process::{Process, serving_in},
};

/// More than a download and the sockets hold, so that its end is not read ahead.
const BYTES: usize = 32 << 20;

fn content(bytes: usize) -> Vec<u8> {
    noise(11).take(bytes / 8).flat_map(u64::to_le_bytes).collect()
}

/// A server on a prefix of the bucket, which it reaches at `endpoint`.
async fn server(s3: &S3Server, prefix: &str, endpoint: Option<&str>) -> Process {
    let mut environment = s3.environment();
    if let Some(endpoint) = endpoint {
        environment[0].1 = format!("http://{endpoint}");
    }
    let environment: Vec<_> = environment.iter().map(|(n, v)| (*n, v.as_str())).collect();
    serving_in(&["--store", &S3Server::url(prefix)], &environment).await.0
}

/// The host and port of the object store.
fn address(s3: &S3Server) -> String {
    s3.environment()[0].1.strip_prefix("http://").unwrap().to_owned()
}

async fn stored(server: &Process, content: Vec<u8>) -> String {
    let url = resource(&server.url, "x:1");
    let put = request(Method::PUT, &url, &[("content-type", "application/octet-stream")]);
    let put = Answer::of(put.body(content)).await;
    assert_eq!(put.status, 201, "{put:?}");
    url
}

/// What arrives of a body, and whether its end is that of the content.
async fn received(response: &mut reqwest::Response, content: &mut Vec<u8>) -> bool {
    loop {
        match patiently("content", response.chunk()).await {
            Ok(Some(piece)) => content.extend_from_slice(&piece),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[tokio::test]
async fn a_download_survives_what_the_object_store_cuts() {
    let s3 = S3Server::shared().await;
    let bytes = content(8 << 20);
    stored(&server(&s3, "cut", None).await, bytes.clone()).await;
    // In the middle of a read, which is of a mebibyte.
    let network = Network::dropping(&address(&s3), 3, 600_000).await;
    let reader = server(&s3, "cut", Some(&network.address)).await;
    let answer = get(&resource(&reader.url, "x:1"), &[]).await;
    assert_eq!((answer.status, hex(&answer.body)), (200, hex(&bytes)));
    assert_eq!(network.cuts_left(), 0, "answers were cut");
    assert!(!reader.stderr().contains(" ERROR "), "{}", reader.stderr());
}

#[tokio::test]
async fn a_download_is_cut_while_the_object_store_is_gone_and_continues_later() {
    let (s3, bytes) = (S3Server::shared().await, content(BYTES));
    let network = Network::working(&address(&s3)).await;
    let mut server = server(&s3, "gone", Some(&network.address)).await;
    let url = stored(&server, bytes.clone()).await;
    let digest = hex(&bytes);
    let client = || Client::builder().no_proxy();
    for (client, version) in [
        (client().http1_only(), Version::HTTP_11),
        (client().http2_prior_knowledge(), Version::HTTP_2),
    ] {
        let client = client.build().unwrap();
        let mut response = client.get(&url).send().await.unwrap();
        assert_eq!((response.status(), response.version()), (StatusCode::OK, version));
        assert_eq!(response.content_length(), Some(BYTES as u64));
        let tag = response.headers()["etag"].clone();
        let first = patiently("content", response.chunk()).await.unwrap().unwrap();
        network.break_all();
        let mut content = first.to_vec();
        let is_whole = received(&mut response, &mut content).await;
        assert!(!is_whole && content.len() < BYTES, "{version:?}: {} bytes", content.len());
        server.logs("store failed").await;
        // What cannot be read at all is refused, with nothing of the bucket in it.
        let refused = get(&url, &[]).await;
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(!String::from_utf8_lossy(&refused.body).contains(&network.address));
        network.mend();
        let range = format!("bytes={}-", content.len());
        let rest = client.get(&url).header("range", range).header("if-range", tag);
        let mut rest = rest.send().await.unwrap();
        assert_eq!(rest.status(), StatusCode::PARTIAL_CONTENT);
        let expected = format!("sha-256=:{}:", BASE64_STANDARD.encode(Sha256::digest(&bytes)));
        assert_eq!(rest.headers()["repr-digest"], *expected);
        assert!(received(&mut rest, &mut content).await);
        assert_eq!(hex_of(&Sha256::digest(&content)), digest, "{version:?}");
    }
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}
