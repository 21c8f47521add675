//! How the cost of a call grows with tools, resources and connections.

use larder_bench::{
    report::plot,
    wire::{Connection, Prepared},
};
use serde_json::json;

use super::*;

pub(super) async fn measure(options: &Options) -> Outcome {
    let mut table = Table::new(
        "Cost of a call as things grow (the smallest size is 1)",
        &["What", "Size", "Cost"],
    );
    let lines = vec![
        ("tools".to_owned(), tools(options).await?),
        ("resources of the caller".to_owned(), resources(options).await?),
        ("connections".to_owned(), connections(options).await?),
    ];
    for (what, points) in &lines {
        for (size, cost) in points {
            table.row([what.clone(), format!("{size:.0}"), format!("{cost:.2}")]);
        }
    }
    table.print();
    plot(&options.plots.join("growth.svg"), "Cost of a call against size", &lines)
}

/// Costs as ratios to that of the first size.
fn relative(sizes: &[usize], rates: &[f64]) -> Vec<(f64, f64)> {
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    sizes.iter().zip(rates).map(|(size, rate)| (*size as f64, rates[0] / rate)).collect()
}

async fn tools(options: &Options) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let sizes = [1, 10, 100, 1_000];
    let mut contenders = Vec::new();
    for size in sizes {
        let more = size.to_string();
        let arguments = ["--listen", "127.0.0.1:0"];
        let environment = [("TOOLS", &*more)];
        let peer = Peer::start_with(&sibling("peer-larder"), &arguments, &environment).await?;
        contenders.push(Contender { name: "Larder", peer, work: Work::echo(Speech::Modern) });
    }
    let run = async |c: &Contender| Ok(c.work.run(c.peer.address, 32, options.time()).await?);
    Ok(relative(&sizes, &rounds(options, &contenders, run, |rate| *rate).await?))
}

async fn connections(options: &Options) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let contender = larder(Work::echo(Speech::Modern)).await?;
    let sizes = [1_usize, 10, 100, 1_000, 10_000];
    let mut idle: Vec<Connection> = Vec::new();
    let mut rates = Vec::new();
    let contenders = [contender];
    for size in sizes {
        // Idle connections; eight other ones make the calls at each size.
        while idle.len() < size {
            let mut connection = Connection::open(contenders[0].peer.address).await?;
            let request = contenders[0].work.request(None, 1);
            connection.exchange(&request, |_| {}).await?;
            idle.push(connection);
        }
        let run = async |c: &Contender| Ok(c.work.run(c.peer.address, 8, options.time()).await?);
        rates.push(rounds(options, &contenders, run, |rate| *rate).await?[0]);
    }
    Ok(relative(&sizes, &rates))
}

/// The cost of reading one resource of a caller who has many.
async fn resources(options: &Options) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let file = tempfile::NamedTempFile::new()?;
    fs::write(
        file.path(),
        "[server]\nlisten = \"127.0.0.1:0\"\n[memory]\nresources_per_owner = 2000000\n",
    )?;
    let config = file.path().to_str().ok_or("a path in UTF-8")?;
    let peer = Peer::start(&sibling("peer-store"), &["--config", config]).await?;
    let work = Work {
        params: json!({ "name": "read_resource", "arguments": { "uri": "bench://0" } }),
        expect: "resource 0",
        ..Work::echo(Speech::Modern)
    };
    let contenders = [Contender { name: "Larder", peer, work }];
    let sizes = [1_000_usize, 10_000, 100_000, 1_000_000];
    let mut rates = Vec::new();
    let mut created = 0;
    let mut connection = Connection::open(contenders[0].peer.address).await?;
    for size in sizes {
        while created < size {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                "name": "create_resource",
                "arguments": { "uri": format!("bench://{created}"), "text": format!("resource {created}") },
            } });
            let request = Prepared::post(&body.to_string(), &[]);
            let (head, _) = connection.exchange(&request, |_| {}).await?;
            if head.status != 200 {
                return Err(format!("a resource was not created: {head:?}").into());
            }
            created += 1;
        }
        let run = async |c: &Contender| Ok(c.work.run(c.peer.address, 8, options.time()).await?);
        rates.push(rounds(options, &contenders, run, |rate| *rate).await?[0]);
    }
    Ok(relative(&sizes, &rates))
}
