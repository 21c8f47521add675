//! Large responses: `resources/read` and a tool's result of ten megabytes.

use serde_json::json;

use super::*;

pub(super) async fn measure(options: &Options) -> Outcome {
    let read = || Work::read(Speech::Modern);
    let tool = || Work {
        params: json!({ "name": "large", "arguments": {} }),
        ..Work::echo(Speech::Modern)
    };
    let tool = || Work { expect: "level=info", at_least: larder_bench::large().len(), ..tool() };
    let mut contenders = vec![limit(read()).await?, larder(read()).await?, larder(tool()).await?];
    if !options.without_peers {
        contenders.push(rmcp(false, read()).await?);
    }
    let operations = ["resources/read", "resources/read", "a tool's result", "resources/read"];
    // Measured before any work, because memory that a process keeps counts.
    let idle: Vec<u64> = contenders.iter().map(|contender| contender.peer.memory()).collect();
    for clients in [1_usize, 8] {
        let mut peaks = vec![Vec::new(); contenders.len()];
        let measure = async |contender: &Contender| {
            contender.peer.forget_peak();
            let rate = contender.work.run(contender.peer.address, clients, options.time()).await?;
            let index = contenders.iter().position(|c| std::ptr::eq(c, contender)).unwrap_or(0);
            let peak = contender.peer.peak().saturating_sub(idle[index]);
            #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52 bytes")]
            peaks[index].push(peak as f64 / clients as f64);
            Ok(rate)
        };
        let rates = rounds(options, &contenders, measure, |rate| *rate).await?;
        let peaks: Vec<f64> = peaks.into_iter().map(median).collect();
        let mut table = Table::new(
            &format!("10 MB of text, {clients} at a time"),
            &["Server", "What", "Ratio to the limit", "Peak memory, ratio", "Peak a request here"],
        );
        for (index, contender) in contenders.iter().enumerate() {
            table.row([
                contender.name.to_owned(),
                operations[index].to_owned(),
                format!("{:.2}", rates[index] / rates[0]),
                format!("{:.2}", peaks[index] / peaks[0]),
                format!("{:.1} MB", peaks[index] / 1e6),
            ]);
        }
        table.print();
    }
    Ok(())
}
