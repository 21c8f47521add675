//! `put` and `get` by size and backend, compared with writing and reading the same
//! bytes as a file.

use std::{fs, hint::black_box};

use crate::{MB, Server, log, median, noise, owner, seconds};
use larder::store::{Content, ResourceUri};

pub(crate) async fn measure() {
    println!("Put and get, as multiples of writing and reading a file of the same bytes");
    println!("                             put      get");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("raw");
    for server in Server::one_per_backend().await {
        for (size, len, rounds) in [
            ("1 kB", 1_000, 501),
            ("1 MB", MB, 101),
            ("10 MB", 10 * MB, 21),
            ("100 MB", 100 * MB, 5),
        ] {
            for (kind, bytes) in [("noise", noise(len)), ("log", log(len).into_bytes())] {
                let mut times: [Vec<f64>; 4] = Default::default();
                for round in 0..=rounds {
                    let content = Content::from(bytes.clone());
                    // A new URI each time: replaced content is kept for a while.
                    let uri = format!("bench://{kind}/{len}/{round}");
                    let uri = ResourceUri::parse(&uri).unwrap();
                    let took = [
                        seconds(async { fs::write(&file, &bytes).unwrap() }).await,
                        seconds(async { black_box(fs::read(&file).unwrap()) }).await,
                        seconds(server.put(uri.as_str(), content)).await,
                        seconds(async {
                            let found = server.app.store().get(&owner(), &uri).await.unwrap();
                            assert_eq!(found.bytes().await.unwrap().len(), bytes.len());
                        })
                        .await,
                    ];
                    if round > 0 {
                        times.iter_mut().zip(took).for_each(|(times, took)| times.push(took));
                    }
                    server.app.store().delete(&owner(), &uri).await.unwrap();
                }
                let [write, read, put, get] = times.map(median);
                let backend = server.backend;
                println!("{backend:<8}{size:<8}{kind:<6}{:>9.2}{:>9.2}", put / write, get / read);
            }
        }
    }
}
