//! Writes of more and more owners with ten sessions each, to three instances over a Redis Cluster of
//! three primaries.

use std::{io, net::SocketAddr, time::Instant};

use futures_util::future::{join, try_join_all};
use larder::testing::RedisServer;
use larder_bench::{
    foreign::process_time,
    issuer::Issuer,
    process::on_servers_core,
    report::{percentile, plot},
    wire::{Connection, Prepared},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{interval, sleep, timeout},
};

use super::*;

const OWNERS: [usize; 4] = [10, 100, 1_000, 10_000];
/// Of each owner.
const SESSIONS: usize = 10;
const INSTANCES: usize = 3;

const WRITERS: usize = 48;

/// Seconds after which what was written expires.
const TTL: u64 = 10;

/// The time until what was written has expired, and that is announced.
const AFTER: Duration = Duration::from_secs(TTL + 2);

/// The pause between two writes whose notification is timed.
const PAUSE: Duration = Duration::from_millis(50);

/// The longest wait for a notification.
const PATIENCE: Duration = Duration::from_secs(10);

const RESOURCE: &str = "http://127.0.0.1:8000/mcp";

/// Writes a second while the cost of each is measured: few enough that nothing queues.
const PACE: f64 = 200.0;

pub(super) async fn measure(options: &Options) -> Outcome {
    let issuer = Issuer::start().await?;
    let mut installations = Vec::new();
    for owners in OWNERS {
        installations.push(Installation::start(owners, &issuer).await?);
    }
    let time = 5 * options.time();
    for installation in &mut installations {
        installation.warm_up().await?;
    }
    // Nothing is left to announce.
    sleep(AFTER).await;
    let pids: Vec<u32> = installations.iter().flat_map(Installation::pids).collect();
    let mut discarded = 0;
    for _ in 0..options.rounds {
        for installation in &mut installations {
            loop {
                let before = Sample::take(&pids);
                let measured = installation.paced(time).await?;
                let busy = Sample::take(&pids).foreign_since(before) > TOLERATED;
                if !busy || discarded >= options.rounds * OWNERS.len() {
                    installation.measured.push(measured);
                    break;
                }
                discarded += 1;
            }
        }
    }
    if discarded > 0 {
        println!("({discarded} measurements were discarded because of other load)");
    }
    for installation in &mut installations {
        for _ in 0..options.rounds {
            let rate = installation.most(options.time()).await?;
            installation.most.push(rate);
        }
    }
    report(options, &installations)
}

fn report(options: &Options, installations: &[Installation]) -> Outcome {
    let mut table = Table::new(
        "Writes of 200 bytes: 10 sessions of each owner, 3 instances, a Redis Cluster of 3, all on one core",
        &[
            "Owners",
            "Cost of a write (10 owners are 1)",
            "CPU of the instances, ms a write",
            "CPU of Redis, ms a write",
            "Notified after, ms: half; 99 of 100",
            "Most writes/s here",
        ],
    );
    let mut line = Vec::new();
    let mut first = None;
    for (owners, installation) in OWNERS.into_iter().zip(installations) {
        let middle =
            |value: fn(&Measured) -> f64| median(installation.measured.iter().map(value).collect());
        let (instances, redis) = (middle(|m| m.instances), middle(|m| m.redis));
        let cost = (instances + redis) / *first.get_or_insert(instances + redis);
        let delays: Vec<f64> =
            installation.measured.iter().flat_map(|m| m.delays.iter().copied()).collect();
        let delay = |share| 1e3 * percentile(delays.clone(), share);
        table.row([
            owners.to_string(),
            format!("{cost:.2}"),
            format!("{instances:.2}"),
            format!("{redis:.2}"),
            format!("{:.1}; {:.1}", delay(0.5), delay(0.99)),
            format!("{:.0}", median(installation.most.clone())),
        ]);
        line.push((f64::from(u32::try_from(owners)?), cost));
    }
    table.print();
    let lines = [("owners with 10 sessions each".to_owned(), line)];
    plot(&options.plots.join("owners.svg"), "Cost of a write against the number of owners", &lines)
}

/// What one paced measurement gave.
struct Measured {
    /// CPU time of the instances for a write, in milliseconds.
    instances: f64,
    /// CPU time of Redis for a write, in milliseconds.
    redis: f64,
    /// Seconds from a write's request to its notification.
    delays: Vec<f64>,
}

/// Three instances over a cluster, with sessions that began.
struct Installation {
    nodes: Vec<RedisServer>,
    peers: Vec<Peer>,
    writers: Vec<Writer>,
    watchers: Vec<Watcher>,
    measured: Vec<Measured>,
    /// Writes a second without a pace.
    most: Vec<f64>,
    _config: tempfile::NamedTempFile,
}

/// Writes in one session after the other, over a connection to one instance.
struct Writer {
    number: usize,
    address: SocketAddr,
    /// Tokens and IDs of sessions, which belong to no other writer.
    sessions: Vec<(String, String)>,
    /// The number of writes so far.
    count: usize,
}

/// A session with an open stream, whose resource is written.
struct Watcher {
    write: Prepared,
    notified: UnboundedReceiver<Instant>,
}

impl Installation {
    async fn start(owners: usize, issuer: &Issuer) -> Result<Self, Box<dyn Error>> {
        let nodes = RedisServer::cluster(Vec::new).await;
        for node in &nodes {
            on_servers_core(node.pid())?;
        }
        let hosts: Vec<String> =
            nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        let config = tempfile::NamedTempFile::new()?;
        fs::write(
            config.path(),
            format!(
                "[server]\nlisten = \"127.0.0.1:0\"\npublic_url = \"{RESOURCE}\"\n\
                 [auth]\nmode = \"oauth\"\n[[auth.issuers]]\nissuer = \"{}\"\n\
                 [store]\nurl = \"redis+cluster://{}\"\n[redis]\nmigrate = true\n",
                issuer.url,
                hosts.join(",")
            ),
        )?;
        let path = config.path().to_str().ok_or("a path in UTF-8")?;
        let mut peers = Vec::new();
        for _ in 0..INSTANCES {
            peers.push(Peer::start(&sibling("peer-store"), &["--config", path]).await?);
        }
        let tokens: Vec<String> =
            (0..owners).map(|owner| issuer.token_of(&format!("owner-{owner}"), RESOURCE)).collect();
        let sessions = begin(&peers, &tokens).await?;
        let mut writers: Vec<Writer> = (0..WRITERS)
            .map(|number| {
                let address = peers[number % INSTANCES].address;
                Writer { number, address, sessions: Vec::new(), count: 0 }
            })
            .collect();
        // Each session is served by another instance than the one on which it began.
        for (number, session) in sessions.iter().enumerate() {
            writers[(number + 1) % WRITERS].sessions.push(session.clone());
        }
        let mut watchers = Vec::new();
        // One of each owner.
        for (number, (token, session)) in sessions.iter().enumerate().take(owners) {
            watchers.push(Watcher::start(&peers, number, session, token).await?);
        }
        let (measured, most) = (Vec::new(), Vec::new());
        Ok(Self { nodes, peers, writers, watchers, measured, most, _config: config })
    }

    fn pids(&self) -> Vec<u32> {
        self.peers.iter().map(Peer::pid).chain(self.nodes.iter().map(RedisServer::pid)).collect()
    }

    /// Lets each owner write to each instance, so that what an instance keeps of an owner is there.
    async fn warm_up(&mut self) -> Outcome {
        let owners =
            self.writers.iter().map(|writer| writer.sessions.len()).sum::<usize>() / SESSIONS;
        let each = INSTANCES * owners / WRITERS + 1;
        try_join_all(self.writers.iter_mut().map(async |writer| {
            let mut connection = Connection::open(writer.address).await?;
            for _ in 0..each {
                writer.write(&mut connection).await?;
            }
            Ok::<_, io::Error>(())
        }))
        .await?;
        Ok(())
    }

    /// Writes at a pace for some time, and times notifications meanwhile. What the servers do
    /// without writes does not count.
    async fn paced(&mut self, time: Duration) -> Result<Measured, Box<dyn Error>> {
        let nodes: Vec<u32> = self.nodes.iter().map(RedisServer::pid).collect();
        let peers: Vec<u32> = self.peers.iter().map(Peer::pid).collect();
        let cpu = |pids: &[u32]| pids.iter().map(|pid| process_time(*pid)).sum::<Duration>();
        let before = (cpu(&peers), cpu(&nodes));
        sleep(time).await;
        let idle = (cpu(&peers), cpu(&nodes));
        let end = Instant::now() + time;
        #[allow(clippy::cast_precision_loss, reason = "few writers")]
        let pause = Duration::from_secs_f64(WRITERS as f64 / PACE);
        let writes = try_join_all(self.writers.iter_mut().map(async |writer| {
            let mut connection = Connection::open(writer.address).await?;
            let before = writer.count;
            #[allow(clippy::cast_precision_loss, reason = "few writers")]
            sleep(pause.mul_f64(writer.number as f64 / WRITERS as f64)).await;
            let mut turns = interval(pause);
            while Instant::now() < end {
                turns.tick().await;
                writer.write(&mut connection).await?;
            }
            Ok::<_, io::Error>(writer.count - before)
        }));
        let (writes, delays) = join(writes, delays(&self.peers, &mut self.watchers, end)).await;
        let (writes, delays) = (writes?.into_iter().sum::<usize>(), delays?);
        // The last ones expire.
        sleep(AFTER).await;
        #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        let each = |after: Duration, idle: Duration, before: Duration| {
            let idle_each_second = (idle - before).as_secs_f64() / time.as_secs_f64();
            let idled = idle_each_second * (time + AFTER).as_secs_f64();
            1e3 * ((after - idle).as_secs_f64() - idled) / (writes + delays.len()) as f64
        };
        let instances = each(cpu(&peers), idle.0, before.0);
        let redis = each(cpu(&nodes), idle.1, before.1);
        Ok(Measured { instances, redis, delays })
    }

    /// Writes as fast as possible for some time. Returns writes a second.
    async fn most(&mut self, time: Duration) -> Result<f64, Box<dyn Error>> {
        let begun = Instant::now();
        let end = begun + time;
        let writes = try_join_all(self.writers.iter_mut().map(async |writer| {
            let mut connection = Connection::open(writer.address).await?;
            let before = writer.count;
            while Instant::now() < end {
                writer.write(&mut connection).await?;
            }
            Ok::<_, io::Error>(writer.count - before)
        }));
        let writes = writes.await?.into_iter().sum::<usize>();
        #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
        let rate = writes as f64 / begun.elapsed().as_secs_f64();
        Ok(rate)
    }
}

/// Begins the sessions of all owners, some at a time, each at an instance in turn. Returns tokens and
/// IDs.
async fn begin(peers: &[Peer], tokens: &[String]) -> io::Result<Vec<(String, String)>> {
    let many = SESSIONS * tokens.len();
    let mut sessions = Vec::with_capacity(many);
    while sessions.len() < many {
        let next = sessions.len()..many.min(sessions.len() + WRITERS);
        let begun = next.map(async |session| {
            let token = tokens[session % tokens.len()].clone();
            let work = call("", Value::Null, &token);
            let id = work.session(peers[session % INSTANCES].address).await?;
            Ok::<_, io::Error>((token, id))
        });
        sessions.extend(try_join_all(begun).await?);
    }
    Ok(sessions)
}

impl Writer {
    /// Creates a resource in the next session.
    async fn write(&mut self, connection: &mut Connection) -> io::Result<()> {
        let (token, session) = &self.sessions[self.count % self.sessions.len()];
        let uri = format!("bench://{}/{}", self.number, self.count);
        let text = "a line of a log. ".repeat(12);
        let arguments = json!({ "uri": uri, "text": text, "ttl": TTL });
        let request = call("create_resource", arguments, token).request(Some(session), 1);
        self.count += 1;
        succeed(connection, &request).await
    }
}

impl Watcher {
    async fn start(
        peers: &[Peer],
        number: usize,
        session: &str,
        token: &str,
    ) -> Result<Self, Box<dyn Error>> {
        let address = peers[number % INSTANCES].address;
        let mut connection = Connection::open(address).await?;
        let uri = format!("bench://watched/{number}");
        let request = |tool: &'static str, text: &str, id| {
            let arguments = json!({ "uri": uri, "text": text });
            call(tool, arguments, token).request(Some(session), id)
        };
        succeed(&mut connection, &request("create_resource", "before", 2)).await?;
        let bearer = format!("Bearer {token}");
        let headers = [
            ("mcp-session-id", session),
            ("mcp-protocol-version", "2025-11-25"),
            ("authorization", &*bearer),
        ];
        let mut stream = Connection::open(address).await?;
        let head = stream.send(&Prepared::get(&headers)).await?;
        if head.status != 200 {
            return Err(format!("no stream: {head:?}").into());
        }
        let subscribe = Work {
            method: "resources/subscribe",
            params: json!({ "uri": uri }),
            ..call("", Value::Null, token)
        };
        succeed(&mut connection, &subscribe.request(Some(session), 3)).await?;
        let write = request("update_resource", "after", 4);
        let (notify, notified) = unbounded_channel();
        tokio::spawn(watch(stream, uri.clone(), notify));
        Ok(Self { write, notified })
    }
}

/// Sends the time of each notification about a resource.
async fn watch(mut stream: Connection, uri: String, notify: UnboundedSender<Instant>) {
    let update = b"notifications/resources/updated";
    let mut event = Vec::new();
    while let Ok(Some(_)) = stream.chunk(|piece| event.extend_from_slice(piece)).await {
        let found = |text: &[u8]| memchr::memmem::find(&event, text).is_some();
        if found(update) && found(uri.as_bytes()) && notify.send(Instant::now()).is_err() {
            return;
        }
        event.clear();
    }
}

/// Writes to one watched resource after the other until `end`, at an instance that does not have the
/// stream, and waits for each notification.
async fn delays(
    peers: &[Peer],
    watchers: &mut [Watcher],
    end: Instant,
) -> Result<Vec<f64>, Box<dyn Error>> {
    let mut connections = Vec::new();
    for peer in peers {
        connections.push(Connection::open(peer.address).await?);
    }
    let mut delays = Vec::new();
    while Instant::now() < end {
        let number = delays.len() % watchers.len();
        let watcher = &mut watchers[number];
        while watcher.notified.try_recv().is_ok() {}
        let begun = Instant::now();
        succeed(&mut connections[(number + 1) % INSTANCES], &watcher.write).await?;
        let notified = timeout(PATIENCE, watcher.notified.recv()).await;
        let notified =
            notified.map_err(|_| "a notification did not come")?.ok_or("a stream ended")?;
        delays.push((notified - begun).as_secs_f64());
        sleep(PAUSE).await;
    }
    Ok(delays)
}

/// A call of a tool over the store.
fn call(tool: &'static str, arguments: Value, token: &str) -> Work {
    Work {
        params: json!({ "name": tool, "arguments": arguments }),
        token: Some(token.to_owned()),
        ..Work::echo(Speech::Sessions(1))
    }
}

/// Sends a request that has to succeed.
async fn succeed(connection: &mut Connection, request: &Prepared) -> io::Result<()> {
    let mut body = Vec::new();
    let (head, _) = connection.exchange(request, |piece| body.extend_from_slice(piece)).await?;
    let failed = |text: &str| memchr::memmem::find(&body, text.as_bytes()).is_some();
    if head.status != 200 || failed("\"isError\":true") || failed("\"error\":") {
        let body = String::from_utf8_lossy(&body);
        return Err(io::Error::other(format!("{head:?}: {body}")));
    }
    Ok(())
}
