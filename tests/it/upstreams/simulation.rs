//! A simulation of clients and an upstream (`tests/upstreams/moody.mjs`) that dies, falls silent,
//! sends bad answers and changes its lists, in an order that a seed determines, while callers cancel
//! and sessions end. However it goes, each call ends with an answer, the upstream is used again as
//! soon as it is well, and nothing is left at the end.
//!
//! A failure names its seed. To replay it:
//!
//! ```sh
//! SIMULATION_SEED=7 cargo test --test it upstreams::simulation
//! ```
//!
//! The seed determines the steps. How fast processes are is up to the machine, so a failure may need
//! several runs of its seed.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use larder::{
    Builder, Registry,
    tools::{self, ToolOptions},
    upstream::{SessionPolicy, Settings, Upstreams},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::{JoinHandle, LocalSet};

use super::{FOLDER, exists, lines};
use crate::support::{Answer, Legacy, Modern, Server, eventually, patiently};

/// The environment variable with the only seed that is simulated.
const SEED: &str = "SIMULATION_SEED";
/// The seeds that are simulated without it.
const SEEDS: std::ops::Range<u64> = 0..6;
/// The steps of a simulation.
const STEPS: usize = 24;
/// The most calls that run at the same time.
const MAX_CALLS: usize = 4;

const STARTS: [&str; 6] = ["well", "well", "well", "well", "dies", "silent"];
const LISTS: [&str; 8] = ["well", "well", "well", "well", "refuses", "mistakes", "silent", "dies"];
const ACTS: [&str; 12] = [
    "answer",
    "long",
    "refuse",
    "silent",
    "garble",
    "mistake",
    "twice",
    "stranger",
    "change",
    "die",
    "answer_and_die",
    "end",
];

/// Numbers that depend only on the seed: SplitMix64 (Steele, Lea and Flood, 2014).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((number ^ (number >> 31)) % end as u64).unwrap()
    }

    fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// A client of either era.
#[derive(Clone)]
enum Client {
    Legacy(Legacy),
    Modern(Modern),
}

impl Client {
    async fn send(&self, method: &str, params: Value) -> Answer {
        match self {
            Self::Legacy(client) => client.send(method, params).await.in_any_form(),
            Self::Modern(client) => client.send(method, params).await.in_any_form(),
        }
    }
}

/// A running simulation.
struct Simulation {
    numbers: Numbers,
    /// The steps so far, for the message of a failure.
    steps: Vec<String>,
    folder: TempDir,
    era: &'static str,
    server: Server,
    upstreams: Upstreams,
    client: Client,
    /// The calls that nobody has cancelled.
    calls: Vec<JoinHandle<Value>>,
    /// The calls whose session has ended: they end, but nobody reads their answers.
    abandoned: Vec<JoinHandle<Value>>,
    last_id: i64,
}

impl Simulation {
    async fn begin(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let era = numbers.choose(&["legacy", "modern"]);
        let folder = TempDir::new().unwrap();
        set_mood(folder.path(), era, "well", "well");

        let script = format!("{FOLDER}/moody.mjs");
        let command = ["node".to_owned(), script].into_iter();
        let files = [mood_of(folder.path()), pids_of(folder.path())];
        let files = files.iter().map(|file| file.display().to_string());
        let mut settings = Settings::new("moody", command.chain(files).collect::<Vec<_>>());
        settings.call_timeout = Duration::from_secs(1);
        settings.start_timeout = Duration::from_secs(2);
        settings.list_timeout = Duration::from_millis(300);
        settings.max_processes = 1 + numbers.below(2);
        settings.session =
            numbers.choose(&[SessionPolicy::Auto, SessionPolicy::Caller, SessionPolicy::All]);
        settings.idle = numbers.choose(&[None, Some(Duration::from_millis(200))]);

        let builder = Registry::builder("gateway").with(tools::reading(ToolOptions::default()));
        let upstreams = Upstreams::new(vec![settings], Vec::new(), builder.tool_names()).unwrap();
        let builder = upstreams.providers().into_iter().fold(builder, Builder::provider);
        let server = Server::of(builder.build().unwrap()).await;
        let client = match numbers.choose(&["legacy", "modern"]) {
            "legacy" => Client::Legacy(Legacy::of(&server).await),
            _ => Client::Modern(Modern::of(&server)),
        };

        Self {
            numbers,
            steps: Vec::new(),
            folder,
            era,
            server,
            upstreams,
            client,
            calls: Vec::new(),
            abandoned: Vec::new(),
            last_id: 1,
        }
    }

    async fn step(&mut self) {
        match self.numbers.below(10) {
            0 | 1 => {
                let (start, list) = (self.numbers.choose(&STARTS), self.numbers.choose(&LISTS));
                self.steps.push(format!("starts {start}, lists {list}"));
                set_mood(self.folder.path(), self.era, start, list);
            }
            2 => {
                self.steps.push("list".to_owned());
                let listed = self.client.send("tools/list", json!({}));
                let listed = patiently(&self.told("a list"), listed).await.json();
                assert!(listed["result"]["tools"].is_array(), "{}: {listed}", self.told("list"));
            }
            3 => {
                let does = self.numbers.choose(&ACTS);
                self.steps.push(format!("call {does}, and cancel it"));
                self.cancel(does).await;
            }
            4 => {
                self.steps.push("wait for all calls".to_owned());
                self.wait_for_calls().await;
            }
            5 if self.numbers.below(2) == 0 => {
                self.steps.push("another session".to_owned());
                if let Client::Legacy(client) = &self.client {
                    self.abandoned.append(&mut self.calls);
                    client.delete().await;
                    self.client = Client::Legacy(Legacy::of(&self.server).await);
                }
            }
            _ => {
                let does = self.numbers.choose(&ACTS);
                self.steps.push(format!("call {does}"));
                self.call(does).await;
            }
        }
    }

    /// Calls the tool, and goes on before the call has ended.
    async fn call(&mut self, does: &'static str) {
        if self.calls.len() == MAX_CALLS {
            self.wait_for_calls().await;
        }

        let client = self.client.clone();
        self.calls.push(tokio::spawn(async move {
            let params = json!({ "name": "act", "arguments": { "does": does } });
            client.send("tools/call", params).await.json()
        }));
    }

    /// Calls the tool, and cancels the call after a while.
    async fn cancel(&mut self, does: &'static str) {
        self.last_id += 1;
        let id = self.last_id;
        let params = json!({ "name": "act", "arguments": { "does": does } });
        let request = match &self.client {
            Client::Legacy(client) => client.post(
                &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }),
            ),
            Client::Modern(client) => client.request(id, "tools/call", params),
        };

        let call = tokio::spawn(request.send());
        let while_it_runs = Duration::from_millis(self.numbers.below(200) as u64);
        tokio::time::sleep(while_it_runs).await;
        if let Client::Legacy(client) = &self.client {
            client.notify("notifications/cancelled", json!({ "requestId": id })).await;
        }
        call.abort();
    }

    /// Waits until each call has ended with an answer.
    async fn wait_for_calls(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            let answer = patiently(&self.told("an answer"), call).await.unwrap();
            let is_answer = answer["result"].is_object() || answer["error"]["message"].is_string();
            assert!(is_answer, "{}: {answer}", self.told("an answer"));
        }
        for call in std::mem::take(&mut self.abandoned) {
            // The end of a session may break the connection off.
            let _ = patiently(&self.told("the end of a call"), call).await;
        }
    }

    /// Lets the upstream be well, and calls it until a call succeeds.
    async fn recover(&mut self) {
        set_mood(self.folder.path(), self.era, "well", "well");
        eventually(&self.told("recovery"), async || {
            let params = json!({ "name": "act", "arguments": { "does": "answer" } });
            let answer = self.client.send("tools/call", params).await.json();
            answer["result"]["content"][0]["text"] == "done"
        })
        .await;
    }

    /// Ends the server, and looks for what is left.
    async fn end(mut self) {
        self.wait_for_calls().await;
        self.recover().await;
        let told = self.told("the end");
        let Self { server, upstreams, folder, client, .. } = self;
        drop(client);
        assert!(patiently(&told, server.stop().finished()).await, "{told}");

        let pids = lines(&pids_of(folder.path()));
        assert!(!pids.is_empty(), "{told}");
        eventually(&told, async || !pids.iter().any(|pid| exists(pid))).await;

        upstreams.replace(Vec::new());
        eventually(&format!("{told}: memory"), async || upstreams.message_bytes() == 0).await;
    }

    /// The message of a wait that fails: the awaited event, and the steps before it.
    fn told(&self, what: &str) -> String {
        format!("{what} after {:?}", self.steps)
    }
}

fn mood_of(folder: &Path) -> PathBuf {
    folder.join("mood.json")
}

fn pids_of(folder: &Path) -> PathBuf {
    folder.join("pids")
}

/// Chooses how the upstream starts, and how it lists its tools, from now on.
fn set_mood(folder: &Path, era: &str, start: &str, list: &str) {
    let mood = json!({ "era": era, "start": start, "list": list }).to_string();
    let next = folder.join("next");
    fs::write(&next, mood).unwrap();
    // No process reads half of it.
    fs::rename(next, mood_of(folder)).unwrap();
}

async fn simulate(seed: u64) {
    println!("{SEED}={seed}");
    let mut simulation = Simulation::begin(seed).await;
    for _ in 0..STEPS {
        simulation.step().await;
    }
    simulation.end().await;
}

#[tokio::test]
async fn every_call_ends_and_nothing_is_left_whatever_an_upstream_does() {
    let chosen = std::env::var(SEED).ok().map(|seed| seed.parse().expect("a number"));
    let seeds = chosen.map_or(SEEDS, |seed: u64| seed..seed + 1);
    // The parts of a server that is being set up stay on their thread.
    let local = LocalSet::new();
    let simulated = local.run_until(async {
        let simulations: Vec<_> =
            seeds.map(|seed| (seed, tokio::task::spawn_local(simulate(seed)))).collect();
        for (seed, simulated) in simulations {
            assert!(simulated.await.is_ok(), "to replay it: {SEED}={seed}");
        }
    });
    simulated.await;
}
