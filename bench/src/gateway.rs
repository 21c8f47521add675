//! Larder in front of another server, beside a reverse proxy in front of the same one.

use larder_bench::large;
use serde_json::json;

use super::*;

const CONNECTIONS: usize = 32;

pub(super) async fn measure(options: &Options) -> Outcome {
    let upstream = larder(Work::echo(Speech::Modern)).await?;
    let address = upstream.peer.address.to_string();
    small_calls(options, &address).await?;
    large_results(options, &address).await
}

async fn proxy(upstream: &str, work: Work) -> Result<Contender, Box<dyn Error>> {
    let peer = Peer::start(&sibling("peer-proxy"), &[upstream]).await?;
    Ok(Contender { name: "a bare reverse proxy", peer, work })
}

async fn gateway(upstream: &str, work: Work) -> Result<Contender, Box<dyn Error>> {
    let url = format!("http://{upstream}/mcp");
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--upstream", &url];
    let peer = Peer::start(&sibling("peer-gateway"), &arguments).await?;
    Ok(Contender { name: "Larder", peer, work })
}

async fn small_calls(options: &Options, upstream: &str) -> Outcome {
    let modern = || Work::echo(Speech::Modern);
    let sessions = || Work::echo(Speech::Sessions(32));
    let contenders = [
        proxy(upstream, modern()).await?,
        gateway(upstream, modern()).await?,
        gateway(upstream, sessions()).await?,
    ];
    let time = options.time();
    let measure = async |contender: &Contender| {
        let run = contender.work.run(contender.peer.address, CONNECTIONS, time).await;
        run.map_err(|error| format!("{}: {error}", contender.name).into())
    };
    let rates = rounds(options, &contenders, measure, |rate| *rate).await?;
    let mut table = Table::new(
        "tools/call echo of an upstream over HTTP, 32 connections, all servers on one core",
        &["In front of it", "Client", "Cost of a call, ratio to the proxy", "Calls/s here"],
    );
    let clients = ["modern", "modern", "legacy, 32 sessions"];
    for ((contender, client), rate) in contenders.iter().zip(clients).zip(&rates) {
        let ratio = format!("{:.2}", rates[0] / rate);
        table.row([contender.name, client, &ratio, &format!("{rate:.0}")]);
    }
    table.print();
    Ok(())
}

/// Results that Larder stores, and the proxy passes on.
async fn large_results(options: &Options, upstream: &str) -> Outcome {
    let whole = || Work {
        params: json!({ "name": "large", "arguments": {} }),
        expect: "level=info",
        at_least: large().len(),
        ..Work::echo(Speech::Modern)
    };
    let preview = Work { expect: "PREVIEW ONLY", at_least: 0, ..whole() };
    let contenders = [proxy(upstream, whole()).await?, gateway(upstream, preview).await?];
    let time = options.time();
    let mut table = Table::new(
        "A result of 10 MB of an upstream over HTTP, one at a time",
        &["In front of it", "Time, ratio to the proxy", "Peak memory above an idle server's"],
    );
    let mut peaks = vec![Vec::new(); contenders.len()];
    let measure = async |contender: &Contender| {
        let idle = contender.peer.memory();
        contender.peer.forget_peak();
        let rate = contender.work.run(contender.peer.address, 1, time).await?;
        let index = contenders.iter().position(|c| std::ptr::eq(c, contender)).unwrap_or(0);
        #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 bytes")]
        peaks[index].push(contender.peer.peak().saturating_sub(idle) as f64);
        Ok(rate)
    };
    let rates = rounds(options, &contenders, measure, |rate| *rate).await?;
    for (index, contender) in contenders.iter().enumerate() {
        table.row([
            contender.name.to_owned(),
            format!("{:.2}", rates[0] / rates[index]),
            format!("{:.1} MB", median(peaks[index].clone()) / 1e6),
        ]);
    }
    table.print();
    Ok(())
}
