//! The cost of an event with few and with a million owners in a store in memory:
//! `cargo bench -p larder-store --bench tenants`, or with some numbers of owners.
//!
//! Each number of owners runs in a process of its own, so that its memory is that of these owners.
//! The simulation of `testing::simulation` creates a resource for each owner, then runs events in
//! which each owner takes part about once a simulated minute. At the end all resources expire at
//! once.
//!
//! | Column | What it is |
//! |---|---|
//! | events | measured events: 30 % reads, the others write and delete |
//! | ns/event, ratio | time of an event with its share of the maintenance and of the checks; as times of the smallest number |
//! | B/owner | resident memory after the events without that of the simulation, and the resources in it |
//! | expiries/s | resources removed each second by the maintenance, with the checks, when all expire |
//! | page µs | a page of 50 owners in the middle of all |
//! | first µs | the first request of one owner after the resources of all others expired |

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::process::Command;

use larder_store::{
    store::ResourceUri,
    testing::simulation::{LONGEST_TTL, Simulation, owner},
};
use tokio::time::Instant;

const SEED: u64 = 20_261_123;
const SIZES: [u32; 4] = [1000, 10_000, 100_000, 1_000_000];

/// The least number of events, so that few owners are measured long enough.
const MIN_EVENTS: u32 = 20_000;

/// The number of owners that are compared with the model one by one.
const SAMPLE: u32 = 1000;

const ROUNDS: u32 = 20;

/// The argument that tells a child process from the one that starts it.
const ONE: &str = "--one";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let sizes: Vec<u32> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    if args.iter().any(|arg| arg == ONE) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it builds");
        runtime.block_on(measure(sizes[0]));
        return;
    }
    println!(
        "   owners    events  ns/event  ratio  resources  B/owner  expiries/s  page µs  first µs"
    );
    let mut smallest = None;
    for size in if sizes.is_empty() { SIZES.to_vec() } else { sizes } {
        let row = child(size);
        let [events, nanos, resources, bytes, expiries, page, first] = row[..] else {
            panic!("another row: {row:?}")
        };
        let ratio = nanos / *smallest.get_or_insert(nanos);
        println!(
            "{size:>9} {events:>9.0} {nanos:>9.0} {ratio:>6.2} {resources:>10.0} {bytes:>8.0} {expiries:>11.0} {page:>8.0} {first:>9.0}"
        );
    }
}

/// The numbers that a process prints for one number of owners.
fn child(size: u32) -> Vec<f64> {
    let this = std::env::current_exe().expect("it is a file");
    let output = Command::new(this).args([ONE, &size.to_string()]).output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

async fn measure(owners: u32) {
    let idle = resident();
    let mut simulation = Simulation::new(SEED, owners).await;
    simulation.fill().await;
    simulation.check(SAMPLE).await;
    let events = u64::from(owners.max(MIN_EVENTS));
    let begin = Instant::now();
    simulation.run(events).await;
    let nanos = begin.elapsed().as_secs_f64() * 1e9 / as_f64(events);
    simulation.check(SAMPLE).await;
    let bytes = resident().saturating_sub(idle).saturating_sub(simulation.memory());
    let resources = simulation.resources();
    let page = page(&simulation, owners).await;

    simulation.pass(LONGEST_TTL);
    let begin = Instant::now();
    let uri = ResourceUri::parse("sim://none").expect("it is a URI");
    let missing = simulation.store().get(&owner(owners / 2), &uri).await;
    let first = begin.elapsed().as_secs_f64() * 1e6;
    assert!(missing.is_err(), "nothing has this URI");
    let begin = Instant::now();
    simulation.settle().await;
    let expiries = as_f64(resources) / begin.elapsed().as_secs_f64();
    simulation.finish(SAMPLE).await;
    let each = as_f64(bytes) / f64::from(owners);
    println!("{events} {nanos} {resources} {each} {expiries} {page} {first}");
}

/// The median microseconds of a page of 50 owners.
async fn page(simulation: &Simulation, owners: u32) -> f64 {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let after = owner(owners / ROUNDS * round);
        let begin = Instant::now();
        let page = simulation.store().owners(Some(after.as_str()), 50).await;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        page.expect("they are listed");
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[allow(clippy::cast_precision_loss, reason = "far less than 2^52")]
fn as_f64(number: u64) -> f64 {
    number as f64
}

/// The resident memory of this process in bytes; 0 where `/proc` has none.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or_default() << 10
}
