//! Interrupted streams: how soon one resumes, and how fast it catches up, on the
//! instance that runs the call and, with Redis, on another one.

use std::{io, net::SocketAddr, time::Instant};

use larder::testing::RedisServer;
use larder_bench::wire::{Connection, Prepared};
use serde_json::json;

use super::*;

const EVENTS: u32 = 9_000;

pub(super) async fn measure(options: &Options) -> Outcome {
    let mut table = Table::new(
        "A call's stream, interrupted at its beginning and resumed",
        &[
            "Stored in",
            "Resumed on",
            "First event, in pings",
            "Events/s here",
            "Ratio to live, memory",
        ],
    );
    let redis = RedisServer::start().await;
    let start = |url: String| async move {
        Peer::start(&sibling("peer-larder"), &["--listen", "127.0.0.1:0", "--store", &url]).await
    };
    let memory = start("memory:".into()).await?;
    let (one, other) = (start(redis.url()).await?, start(redis.url()).await?);
    let mut live_in_memory = None;
    for (store, instance, from, to) in [
        ("memory", "the same", &memory, &memory),
        ("Redis", "the same", &one, &one),
        ("Redis", "another", &one, &other),
    ] {
        let (mut firsts, mut rates, mut lives) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            lives.push(live(from.address).await?);
            let ping = ping(to.address).await?;
            let (first, rate) = resumed(from.address, to.address).await?;
            firsts.push(first / ping);
            rates.push(rate);
        }
        let live = *live_in_memory.get_or_insert(median(lives));
        let rate = median(rates);
        table.row([
            store.to_owned(),
            instance.to_owned(),
            format!("{:.1}", median(firsts)),
            format!("{rate:.0}"),
            format!("{:.2}", rate / live),
        ]);
    }
    table.print();
    Ok(())
}

/// A client with a session.
struct Client {
    session: String,
}

impl Client {
    async fn new(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { session: Work::echo(Speech::Sessions(1)).session(address).await? })
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        vec![("mcp-session-id", &self.session), ("mcp-protocol-version", "2025-11-25")]
    }

    /// A call that sends [`EVENTS`] progress notifications.
    fn call(&self) -> Prepared {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": "count", "arguments": { "to": EVENTS }, "_meta": { "progressToken": "t" },
            },
        });
        Prepared::post(&body.to_string(), &self.headers())
    }

    fn resume(&self, last: &str) -> Prepared {
        let mut headers = self.headers();
        headers.push(("last-event-id", last));
        Prepared::get(&headers)
    }
}

/// Reads events up to the result. Returns their number, and the time of the first.
async fn read(connection: &mut Connection) -> io::Result<(usize, Option<Instant>)> {
    let (mut events, mut first, mut tail) = (0, None, Vec::new());
    loop {
        let mut ended = false;
        let chunk = connection
            .chunk(|piece| {
                first.get_or_insert_with(Instant::now);
                // Text that crosses two pieces is found with the second.
                let seen = tail.len().min(16);
                let joined = [&tail[tail.len() - seen..], piece].concat();
                let before = memchr::memmem::find_iter(&joined[..seen], b"data:").count();
                events += memchr::memmem::find_iter(&joined, b"data:").count() - before;
                ended |= memchr::memmem::find(&joined, b"\"result\"").is_some();
                tail = joined;
            })
            .await?;
        if chunk.is_none() || ended {
            return Ok((events, first));
        }
    }
}

/// The events per second of an uninterrupted call.
async fn live(address: SocketAddr) -> Result<f64, Box<dyn Error>> {
    let client = Client::new(address).await?;
    let mut connection = Connection::open(address).await?;
    let begun = Instant::now();
    connection.send(&client.call()).await?;
    let (events, _) = read(&mut connection).await?;
    complete(events)?;
    Ok(f64::from(EVENTS) / begun.elapsed().as_secs_f64())
}

/// The seconds of a small request on a new connection.
async fn ping(address: SocketAddr) -> Result<f64, Box<dyn Error>> {
    let client = Client::new(address).await?;
    let request = Prepared::post(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, &client.headers());
    let begun = Instant::now();
    let mut connection = Connection::open(address).await?;
    connection.exchange(&request, |_| {}).await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Interrupts a call's stream at its first event, waits for the call to end, and
/// resumes it. Returns the seconds to the first event, and the events per second.
async fn resumed(from: SocketAddr, to: SocketAddr) -> Result<(f64, f64), Box<dyn Error>> {
    let client = Client::new(from).await?;
    let mut connection = Connection::open(from).await?;
    connection.send(&client.call()).await?;
    let mut chunk = Vec::new();
    connection.chunk(|piece| chunk.extend_from_slice(piece)).await?;
    drop(connection);
    let chunk = String::from_utf8(chunk)?;
    let id = chunk.lines().find_map(|line| line.strip_prefix("id:")).ok_or("no event id came")?;
    // The call ends before the measurement.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let begun = Instant::now();
    let mut connection = Connection::open(to).await?;
    let head = connection.send(&client.resume(id.trim())).await?;
    if head.status != 200 {
        return Err(format!("the stream cannot be resumed: {}", head.status).into());
    }
    let (events, first) = read(&mut connection).await?;
    complete(events)?;
    let took = begun.elapsed().as_secs_f64();
    let first = first.map_or(took, |first| (first - begun).as_secs_f64());
    Ok((first, f64::from(EVENTS) / took))
}

fn complete(events: usize) -> Result<(), Box<dyn Error>> {
    if events < EVENTS as usize {
        return Err(format!("{events} of {EVENTS} events came").into());
    }
    Ok(())
}
