//! Stored content over HTTP, beside nginx that sends a file of the same bytes, and takes one.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::Path,
    time::Instant,
};

use futures_util::future::try_join_all;
use larder_bench::{
    large,
    wire::{Connection, Prepared},
};
use serde_json::json;

use super::*;

/// The path at nginx, and below it.
const FILE: &str = "large";

pub(super) async fn measure(options: &Options) -> Outcome {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join(FILE), large())?;
    let larder =
        Peer::start(&sibling("peer-gateway"), &["serve", "--listen", "127.0.0.1:0"]).await?;
    store(larder.address).await?;
    let (work, path) = (Work::echo(Speech::Modern), "/resources?uri=bench:large");
    let contenders = [
        Contender { name: "nginx", peer: nginx(folder.path()).await?, work: work.clone() },
        Contender { name: "Larder", peer: larder, work },
    ];
    let gets = [Prepared::get_path(&format!("/{FILE}")), Prepared::get_path(path)];
    let puts = [
        Prepared::put_path("/uploaded", large().as_bytes()),
        Prepared::put_path("/resources?uri=bench:uploaded", large().as_bytes()),
    ];
    for (method, requests) in [("GET", gets), ("PUT", puts)] {
        for clients in [1_usize, 8] {
            let measure = async |contender: &Contender| {
                let found = contenders.iter().position(|c| std::ptr::eq(c, contender));
                let request = &requests[found.unwrap_or(0)];
                let address = contender.peer.address;
                Ok(transfers(address, method, request, clients, options.time()).await?)
            };
            let rates = rounds(options, &contenders, measure, |rate| *rate).await?;
            let mut table = Table::new(
                &format!("{method} of {:.0} MB, {clients} at a time", bytes(large().len()) / 1e6),
                &["Server", "Ratio to nginx", "MB/s here"],
            );
            for (contender, rate) in contenders.iter().zip(&rates) {
                let throughput = rate * bytes(large().len()) / 1e6;
                table.row([
                    contender.name.to_owned(),
                    format!("{:.2}", rate / rates[0]),
                    format!("{throughput:.0}"),
                ]);
            }
            table.print();
        }
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 bytes")]
fn bytes(count: usize) -> f64 {
    count as f64
}

/// Stores the content. It is text of a log, so its blocks are compressed.
async fn store(address: SocketAddr) -> io::Result<()> {
    let arguments = json!({ "uri": "bench:large", "text": large() });
    let create = Work {
        params: json!({ "name": "create_resource", "arguments": arguments }),
        ..Work::echo(Speech::Modern)
    };
    let mut connection = Connection::open(address).await?;
    let (head, _) = connection.exchange(&create.request(None, 1), |_| {}).await?;
    if head.status == 200 { Ok(()) } else { Err(io::Error::other(format!("{head:?}"))) }
}

/// nginx as Debian has it, in one process, with the files of a folder.
async fn nginx(folder: &Path) -> io::Result<Peer> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let root = folder.display();
    fs::write(
        folder.join("nginx.conf"),
        format!(
            "daemon off;\nmaster_process off;\npid {root}/pid;\nerror_log {root}/error.log;\n\
             events {{}}\nhttp {{\n  access_log off;\n  sendfile on;\n  tcp_nopush on;\n  \
             keepalive_requests 1000000;\n  client_max_body_size 1g;\n  server {{ listen {address}; root {root}; dav_methods PUT; }}\n}}\n"
        ),
    )?;
    // It says when it listens, as the other servers do.
    let script = format!(
        "(until curl -sf -o /dev/null http://{address}/{FILE}; do sleep 0.05; done; \
         echo nginx listening on http://{address}/ >&2) & \
         exec nginx -p {root} -e {root}/error.log -c {root}/nginx.conf"
    );
    Peer::start(Path::new("sh"), &["-c", &script]).await
}

/// Transfers per second over a number of connections.
async fn transfers(
    address: SocketAddr,
    method: &str,
    request: &Prepared,
    connections: usize,
    time: Duration,
) -> io::Result<f64> {
    let begun = Instant::now();
    let end = begun + time;
    let counts = try_join_all((0..connections).map(|_| async {
        let mut connection = Connection::open(address).await?;
        let mut count = 0_usize;
        while Instant::now() < end {
            let (head, length) = connection.exchange(request, |_| {}).await?;
            let is_whole = method != "GET" || length == large().len();
            if !(200..300).contains(&head.status) || !is_whole {
                return Err(io::Error::other(format!("{head:?} with {length} bytes")));
            }
            count += 1;
        }
        Ok(count)
    }))
    .await?;
    Ok(bytes(counts.into_iter().sum()) / begun.elapsed().as_secs_f64())
}
