//! Streams that are cut: how soon one goes on, and how fast it catches up, on
//! the server that runs the call and, over Redis, on another one.

// Of the tests' server, the part that starts it.

use std::{io, net::SocketAddr, time::Instant};

use larder_bench::wire::{Connection, Prepared};
use larder::testing::RedisServer;
use serde_json::json;

use super::*;

const EVENTS: u32 = 9_000;

pub(super) async fn measure(options: &Options) -> Outcome {
    let mut table = Table::new(
        "A call's stream, cut at its beginning and resumed",
        &[
            "Kept in",
            "Resumed on",
            "First event, in pings",
            "Events/s here",
            "Ratio to live, memory",
        ],
    );
    let redis = RedisServer::start().await;
    let at = |url: String| async move {
        Peer::start(&sibling("peer-larder"), &["--listen", "127.0.0.1:0", "--store", &url]).await
    };
    let memory = at("memory:".into()).await?;
    let (one, other) = (at(redis.url()).await?, at(redis.url()).await?);
    let mut live_in_memory = None;
    for (kept, name, from, to) in [
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
            kept.to_owned(),
            name.to_owned(),
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

    /// A call that says so many times how far it is.
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

/// Reads events up to the result; how many there were, and when the first came.
async fn read(connection: &mut Connection) -> io::Result<(usize, Option<Instant>)> {
    let (mut events, mut first, mut tail) = (0, None, Vec::new());
    loop {
        let mut ended = false;
        let chunk = connection
            .chunk(|piece| {
                first.get_or_insert_with(Instant::now);
                // What lies across two pieces is seen with the second.
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

/// Events a second of a call that is not cut.
async fn live(address: SocketAddr) -> Result<f64, Box<dyn Error>> {
    let client = Client::new(address).await?;
    let mut connection = Connection::open(address).await?;
    let begun = Instant::now();
    connection.send(&client.call()).await?;
    let (events, _) = read(&mut connection).await?;
    complete(events)?;
    Ok(f64::from(EVENTS) / begun.elapsed().as_secs_f64())
}

/// Seconds of a small request on a connection of its own.
async fn ping(address: SocketAddr) -> Result<f64, Box<dyn Error>> {
    let client = Client::new(address).await?;
    let request = Prepared::post(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, &client.headers());
    let begun = Instant::now();
    let mut connection = Connection::open(address).await?;
    connection.exchange(&request, |_| {}).await?;
    Ok(begun.elapsed().as_secs_f64())
}

/// Cuts a call off at its first event, lets it end, and resumes it: seconds to
/// the first event, and events a second.
async fn resumed(from: SocketAddr, to: SocketAddr) -> Result<(f64, f64), Box<dyn Error>> {
    let client = Client::new(from).await?;
    let mut connection = Connection::open(from).await?;
    connection.send(&client.call()).await?;
    let mut said = Vec::new();
    connection.chunk(|piece| said.extend_from_slice(piece)).await?;
    drop(connection);
    let said = String::from_utf8(said)?;
    let id = said.lines().find_map(|line| line.strip_prefix("id:")).ok_or("no event id came")?;
    // The call itself is not what is measured.
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
