//! Stored content over HTTP, beside nginx that sends a file of the same bytes, and takes one.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::Path,
    time::Instant,
};

use futures_util::future::try_join_all;
use larder_bench::{
    foreign::process_ticks,
    large,
    wire::{Connection, Prepared},
};

use super::*;

/// The files at nginx: a log, and noise of the same size, which is not compressed.
const LOG: &str = "log";
const NOISE: &str = "noise";

pub(super) async fn measure(options: &Options) -> Outcome {
    let (folder, noise) = (tempfile::tempdir()?, noise(large().len()));
    fs::write(folder.path().join(LOG), large())?;
    fs::write(folder.path().join(NOISE), &noise)?;
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let larder = async |environment: &[(&str, &str)]| {
        let peer = Peer::start_with(&sibling("peer-gateway"), &serve, environment).await?;
        store(peer.address, LOG, large().as_bytes()).await?;
        store(peer.address, NOISE, &noise).await?;
        io::Result::Ok(peer)
    };
    let contender = |name, peer| Contender { name, peer, work: Work::echo(Speech::Modern) };
    let contenders = [
        contender("nginx", nginx(folder.path()).await?),
        contender("Larder", larder(&[]).await?),
        contender("Larder without a cache", larder(&[("LARDER_STORE__CACHE_BYTES", "0")]).await?),
    ];
    let path = |name: &str| [format!("/{name}"), resource(name)];
    let log = path(LOG);
    let get = |paths: [String; 2]| paths.map(|path| Prepared::get_path(&path));
    let put =
        |name: &str, content: &[u8]| path(name).map(|path| Prepared::put_path(&path, content));
    for (name, requests) in [
        ("GET of a log", get(log.clone())),
        ("GET of a log by a client that accepts zstd", log.map(|path| Prepared::get_zstd(&path))),
        ("GET of noise", get(path(NOISE))),
        ("PUT of a log", put("uploaded", large().as_bytes())),
        ("PUT of noise", put("uploaded", &noise)),
    ] {
        for clients in [1_usize, 8] {
            compare(options, &contenders, name, &requests, clients).await?;
        }
    }
    Ok(())
}

/// Measures the same transfers with each contender. The first request is for the first one,
/// the second for the others.
async fn compare(
    options: &Options,
    contenders: &[Contender],
    name: &str,
    requests: &[Prepared; 2],
    clients: usize,
) -> Outcome {
    let mut cpu = vec![(0, 0.0); contenders.len()];
    let measure = async |contender: &Contender| {
        let index = contenders.iter().position(|c| std::ptr::eq(c, contender)).unwrap_or(0);
        let request = &requests[index.min(1)];
        let before = process_ticks(contender.peer.pid());
        let (count, time) =
            transfers(contender.peer.address, request, clients, options.time()).await?;
        cpu[index].0 += process_ticks(contender.peer.pid()) - before;
        cpu[index].1 += count;
        Ok(count / time)
    };
    let rates = rounds(options, contenders, measure, |rate| *rate).await?;
    let mut table = Table::new(
        &format!("{name} of {:.0} MB, {clients} at a time", bytes(large().len()) / 1e6),
        &["Server", "Ratio to nginx", "MB/s here", "CPU time of the server per transfer"],
    );
    for ((contender, rate), (ticks, count)) in contenders.iter().zip(&rates).zip(cpu) {
        let throughput = rate * bytes(large().len()) / 1e6;
        table.row([
            contender.name.to_owned(),
            format!("{:.2}", rate / rates[0]),
            format!("{throughput:.0}"),
            format!("{:.1} ms", f64::from(u32::try_from(ticks)?) * 10.0 / count),
        ]);
    }
    table.print();
    Ok(())
}

/// The path of a resource at Larder.
fn resource(name: &str) -> String {
    format!("/resources?uri=bench:{name}")
}

/// Bytes that compression does not make smaller.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 3_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    });
    words.flat_map(u64::to_le_bytes).take(length).collect()
}

#[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 bytes")]
fn bytes(count: usize) -> f64 {
    count as f64
}

/// Stores content.
async fn store(address: SocketAddr, name: &str, content: &[u8]) -> io::Result<()> {
    let mut connection = Connection::open(address).await?;
    let put = Prepared::put_path(&resource(name), content);
    let (head, _) = connection.exchange(&put, |_| {}).await?;
    if head.status == 201 { Ok(()) } else { Err(io::Error::other(format!("{head:?}"))) }
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
        "(until curl -sf -o /dev/null http://{address}/{LOG}; do sleep 0.05; done; \
         echo nginx listening on http://{address}/ >&2) & \
         exec nginx -p {root} -e {root}/error.log -c {root}/nginx.conf"
    );
    Peer::start(Path::new("sh"), &["-c", &script]).await
}

/// The number of transfers over a number of connections, and the seconds that they took.
async fn transfers(
    address: SocketAddr,
    request: &Prepared,
    connections: usize,
    time: Duration,
) -> io::Result<(f64, f64)> {
    let begun = Instant::now();
    let end = begun + time;
    let counts = try_join_all((0..connections).map(|_| async {
        let mut connection = Connection::open(address).await?;
        let mut count = 0_usize;
        while Instant::now() < end {
            let (head, _) = connection.exchange(request, |_| {}).await?;
            if !(200..300).contains(&head.status) {
                return Err(io::Error::other(format!("{head:?}")));
            }
            count += 1;
        }
        Ok(count)
    }))
    .await?;
    Ok((bytes(counts.into_iter().sum()), begun.elapsed().as_secs_f64()))
}
