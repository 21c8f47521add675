//! The memory of idle sessions and open streams.

use larder_bench::wire::{Connection, Prepared};

use super::*;

const SESSIONS: usize = 10_000;
const STREAMS: usize = 1_000;

pub(super) async fn measure() -> Outcome {
    let mut table =
        Table::new("Idle sessions and streams", &["Server", "One session", "One more stream"]);
    let work = Work::echo(Speech::Sessions(1));
    for contender in [larder(work.clone()).await?, rmcp(true, work).await?] {
        let (address, work) = (contender.peer.address, &contender.work);
        // The first ones also cause allocations that later ones share.
        let mut sessions = Vec::new();
        for _ in 0..STREAMS {
            sessions.push(work.session(address).await?);
        }
        let before = contender.peer.memory();
        for _ in 0..SESSIONS {
            sessions.push(work.session(address).await?);
        }
        let with_sessions = contender.peer.memory();
        let mut streams = Vec::new();
        for session in sessions.iter().take(STREAMS) {
            let mut connection = Connection::open(address).await?;
            let get = Prepared::get(&[
                ("mcp-session-id", session),
                ("mcp-protocol-version", "2025-11-25"),
            ]);
            let head = connection.send(&get).await?;
            if head.status != 200 {
                return Err(format!("{}: {head:?}", contender.name).into());
            }
            streams.push(connection);
        }
        let with_streams = contender.peer.memory();
        table.row([
            contender.name.to_owned(),
            format!("{} B", (with_sessions.saturating_sub(before)) / SESSIONS as u64),
            format!("{} B", (with_streams.saturating_sub(with_sessions)) / STREAMS as u64),
        ]);
    }
    table.print();
    Ok(())
}
