//! Small calls: `tools/call echo` over 32 connections.

use std::path::Path;

use super::*;

const CONNECTIONS: usize = 32;

pub(super) async fn measure(options: &Options) -> Outcome {
    let echo = Work::echo;
    let (modern, one, many) = (Speech::Modern, Speech::Sessions(1), Speech::Sessions(64));
    let (with_token, _issuer) = larder_with_auth(echo(modern)).await?;
    let mut contenders = vec![
        ("any", limit(echo(modern)).await?),
        ("modern", larder(echo(modern)).await?),
        ("legacy, no session", larder(echo(Speech::Sessionless)).await?),
        ("legacy, 1 session", larder(echo(one)).await?),
        ("legacy, 64 sessions", larder(echo(many)).await?),
        ("modern, verified JWT", with_token),
    ];
    if !options.without_peers {
        contenders.extend([
            ("modern", rmcp(false, echo(modern)).await?),
            ("legacy, no session", rmcp(false, echo(Speech::Sessionless)).await?),
            ("legacy, 64 sessions", rmcp(true, echo(many)).await?),
            ("legacy, no session", typescript("stateless", echo(Speech::Sessionless)).await?),
            ("legacy, 64 sessions", typescript("sessions", echo(many)).await?),
            ("legacy, no session", fastmcp(options, "stateless", Speech::Sessionless).await?),
            ("legacy, 64 sessions", fastmcp(options, "sessions", many).await?),
        ]);
    }
    let (speeches, contenders): (Vec<_>, Vec<_>) = contenders.into_iter().unzip();
    let time = options.time();
    let measure = async |contender: &Contender| {
        let address = contender.peer.address;
        let run = contender.work.run(address, CONNECTIONS, time).await;
        run.map_err(|error| format!("{}: {error}", contender.name).into())
    };
    let rates = rounds(options, &contenders, measure, |rate| *rate).await?;
    let mut table = Table::new(
        "tools/call echo, 32 connections, server on one core",
        &["Server", "Client", "Ratio to the limit", "Calls/s here"],
    );
    for ((contender, speech), rate) in contenders.iter().zip(speeches).zip(&rates) {
        let ratio = format!("{:.3}", rate / rates[0]);
        table.row([contender.name, speech, &ratio, &format!("{rate:.0}")]);
    }
    table.print();
    println!("With a verified JWT, as a ratio to without: {:.2}", rates[5] / rates[1]);
    Ok(())
}

fn peers() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

async fn typescript(mode: &str, work: Work) -> Result<Contender, Box<dyn Error>> {
    let script = peers().join("typescript/server.mjs");
    let script = script.to_str().ok_or("a path in UTF-8")?;
    let environment = [("NODE_ENV", "production")];
    let peer = Peer::start_with(Path::new("node"), &[script, mode], &environment).await?;
    Ok(Contender { name: "TypeScript SDK", peer, work })
}

async fn fastmcp(
    options: &Options,
    mode: &str,
    speech: Speech,
) -> Result<Contender, Box<dyn Error>> {
    let script = peers().join("fastmcp/server.py");
    let script = script.to_str().ok_or("a path in UTF-8")?;
    let peer = Peer::start(&options.python, &[script, mode]).await?;
    Ok(Contender { name: "FastMCP", peer, work: Work::echo(speech) })
}
