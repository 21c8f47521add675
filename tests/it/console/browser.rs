//! The console in Chromium.

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use larder::{
    Builder, Context, Tool,
    apps::{self, AppOptions},
    clock::{Clock, SystemClock},
    query::{Queries, QueryLimits},
    tools::{self, ToolOptions},
    upstream::{Settings, Upstream},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::Command,
};

use super::{offered, oidc::Site, settings, traffic};
use crate::{
    auth::provider::Provider,
    support::{Modern, Server},
};

/// Stores many small resources.
#[derive(Deserialize, JsonSchema)]
struct Fill {
    /// How many.
    count: usize,
}

/// What tools store, as pictures of the list show it: URI, name, media type, lines, and hours to
/// live.
const TYPICAL: [(&str, &str, &str, usize, u64); 10] = [
    ("ci://builds/4127", "Build 4127", "text/plain", 900, 24),
    ("crm://accounts", "Accounts", "application/json", 250, 72),
    ("logs://api/today", "Access log", "text/plain", 4_000, 24),
    ("metrics://latency", "Latency by region", "text/csv", 600, 48),
    ("reports://third-quarter", "Quarterly report", "text/markdown", 120, 160),
    ("search://parse_config", "Uses of parse_config", "application/json", 75, 24),
    ("sql://orders", "Open orders", "text/csv", 1_500, 30),
    ("tickets://open", "Open tickets", "application/x-ndjson", 340, 24),
    ("traces://checkout", "Slow checkouts", "application/json", 2_000, 20),
    ("web://rfc9110", "RFC 9110", "text/html", 3_100, 100),
];

/// What could run as a script if it were not shown as text.
const HOSTILE: [(&str, &str, &str); 4] = [
    (
        "<img src=x onerror=fetch('http://larder.test/beacon')>",
        "text/csv",
        "a,<script>alert(1)</script>\n1,<img src=x onerror=alert(1)>\n2,javascript:alert(1)\n",
    ),
    (
        "\"><svg onload=alert(2)>",
        "application/json",
        "{\"<img src=x onerror=alert(2)>\":\"javascript:alert(2)\",\"b\":[\"<script>alert(2)</script>\"]}",
    ),
    (
        "{{constructor.constructor('alert(3)')()}}",
        "text/html",
        "<body onload=alert(3)><script>alert(3)</script>",
    ),
    (
        "'-alert(4)-'",
        "image/svg+xml",
        "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(4)\"/>",
    ),
];

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn a_person_sees_shares_and_deletes_what_is_stored() {
    let server = Server::configured(|setup| {
        settings(&mut setup.config);
        setup.config.auth.tokens[0].scopes = vec!["larder:admin".into()];
        setup.offer(|builder| {
            let upstream = Settings::new("broken", vec!["false".to_owned()]);
            let upstreams = Upstream::all(vec![upstream], builder.tool_names());
            let builder = upstreams.into_iter().fold(builder, Builder::provider);
            offered(builder).tool(Tool::new(|ctx: Context<_>, fill: Fill| async move {
                for index in 0..fill.count {
                    let uri = format!("x:many/{index:06}");
                    let stored = ctx.create_resource(uri, format!("line {index}"));
                    stored.name(format!("Item {index}")).await?;
                }
                Ok::<_, larder::ToolError>("filled")
            }))
        });
    })
    .await;
    // The browser's clock is that of the machine.
    let hour = Duration::from_secs(3600);
    server.clock.advance(SystemClock.now().since(server.clock.now()).saturating_sub(10 * hour));
    let client = Modern::bearing(&server, "anna");
    for (uri, name, mime_type, lines, hours) in TYPICAL {
        let text = "one line of what a tool has returned\n".repeat(lines);
        let given = json!({
            "uri": uri, "name": name, "mime_type": mime_type, "text": text, "ttl": hours * 3600,
        });
        client.call("create_resource", given).await.result();
        server.clock.advance(hour);
    }
    let store = async |uri: &str, name: &str, mime_type: &str, text: &str| {
        let given = json!({ "uri": uri, "name": name, "mime_type": mime_type, "text": text });
        client.call("create_resource", given).await.result();
    };
    client.call("fill", json!({ "count": 99_900 })).await.result();
    store("x:a-orbits", "Orbits", "text/markdown", "the perihelion of Mercury\nadvances\n").await;
    let table = (0..400).fold("region,units\n".to_owned(), |table, row| {
        table + ["north", "south", "east"][row % 3] + &format!(",{}\n", row * 7 % 97)
    });
    store("x:table", "Sales", "text/csv", &format!("{table}west,1\n")).await;
    client.call("update_resource", json!({ "uri": "x:table", "text": table })).await.result();
    for (index, (name, mime_type, text)) in HOSTILE.into_iter().enumerate() {
        store(&format!("x:xss/{index}"), name, mime_type, text).await;
    }
    let of_ben = Modern::bearing(&server, "ben");
    for index in 0..3 {
        let given = json!({ "uri": format!("x:{index}"), "text": "0123456789".repeat(40_000) });
        of_ben.call("create_resource", given).await.result();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("From a person.csv");
    std::fs::write(&file, "a,b\n1,2\n").unwrap();
    let seen = walk(
        "console.mjs",
        &json!({
            "chromium": "/usr/bin/chromium",
            "url": format!("http://{}/console/", server.address),
            "token": "anna",
            "file": file,
            "screenshots": std::env::var("SCREENSHOTS").ok(),
            "prefix": "x:many/09989",
            "last": "Item 99899",
            "table": "x:table",
            "hostile": HOSTILE.len(),
        }),
        || store("a:new", "Appears by itself", "text/plain", "new"),
    )
    .await;
    assert_eq!(seen["failed"], Value::Null, "{seen}");
    for none in ["violations", "beacons", "errors", "axe"] {
        assert_eq!(seen[none], json!([]), "{none}");
    }
    // `make browser-test` shows it.
    let seconds = seen["appeared"].as_f64().unwrap() / 1000.0;
    println!("measured: a new resource appears in the list of 99,916: {seconds:.2} s");
    assert!(seen["refused"].as_str().unwrap().starts_with("The token is not accepted"), "{seen}");
    // A page, with the row of headings.
    assert_eq!((&seen["rows"], &seen["prefixed"]), (&json!(51), &json!(11)));
    assert_eq!((&seen["first"], &seen["second"]), (&json!("Build 4127"), &json!("Item 39")));
    assert!(seen["usage"].as_str().unwrap().contains("99,916 of 100,000 resources"), "{seen}");
    assert_eq!(seen["left"], "Not searched: all after the first 10,000 by URI.");
    assert!(seen["link"].as_str().unwrap().starts_with("larder://shared/"), "{seen}");
    assert_eq!(seen["revisions"], json!(["Revision 2", "Revision 1"]));
    assert_eq!(seen["saved"], table);
    assert_eq!(
        (&seen["expires"], &seen["extended"]),
        (&json!("expires in 24 h"), &json!("expires in 7 days"))
    );
    assert_eq!(
        (&seen["ascending"], &seen["descending"]),
        (&json!("ascending"), &json!("descending"))
    );
    let upstream = seen["upstream"].as_str().unwrap();
    assert!(upstream.contains("did not start"), "{upstream}");
    let owner = seen["owner"].as_str().unwrap();
    assert!(owner.starts_with("static \"ben\""), "{owner}");
    assert_eq!(seen["purged"], "Deleted 3 resources of static \"ben\".");
    assert_eq!(seen["loggedOut"], true);
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn each_kind_is_shown_and_its_url_shows_it_again() {
    let server = Server::configured(|setup| {
        settings(&mut setup.config);
        setup.offer(|builder| {
            let program = Some(env!("CARGO_BIN_EXE_larder").into());
            let queries = Arc::new(Queries::new(QueryLimits { program, ..QueryLimits::default() }));
            let viewing =
                AppOptions { queries: Some(Arc::clone(&queries)), ..AppOptions::default() };
            builder
                .with(tools::reading(ToolOptions::default()))
                .with(tools::writing())
                .with(tools::downloading())
                .with(tools::uploading())
                .with(tools::querying_with(queries, true))
                .with(apps::viewing(viewing))
        });
    })
    .await;
    let given = json!({
        "chromium": "/usr/bin/chromium",
        "url": format!("http://{}/console/", server.address),
        "mcp": server.url,
        "token": "anna",
        "screenshots": std::env::var("SCREENSHOTS").ok(),
    });
    let seen = walk("console_views.mjs", &given, async || {}).await;
    assert_eq!(seen["failed"], Value::Null, "{}", seen["failed"].as_str().unwrap_or_default());
    for none in ["violations", "beacons", "errors", "axe"] {
        assert_eq!(seen[none], json!([]), "{none}");
    }
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn an_operator_watches_the_traffic() {
    let (server, anna) = traffic::server().await;
    let of_ben = Modern::bearing(&server, "ben");
    let _stream = of_ben.listen(1, json!({ "resourcesListChanged": true })).await;
    let given = json!({
        "chromium": "/usr/bin/chromium",
        "url": format!("http://{}/console/", server.address),
        "token": "anna",
        "screenshots": std::env::var("SCREENSHOTS").ok(),
    });
    // 50 minutes of a busy instance.
    let seen = walk("console_traffic.mjs", &given, async || {
        for step in 1..=300 {
            for call in 0..(step % 100).min(100 - step % 100) / 7 {
                let lines = 300 + (step * 37 + call * 411) % 900;
                of_ben.call("report", json!({ "lines": lines })).await.result();
            }
            if step % 60 < 12 {
                of_ben.call("nothing", json!({})).await;
            }
            server.clock.advance(traffic::INTERVAL);
            traffic::sampled(&anna, step + 1).await;
        }
    })
    .await;
    assert_eq!(seen["failed"], Value::Null, "{seen}");
    for none in ["violations", "beacons", "errors", "axe"] {
        assert_eq!(seen[none], json!([]), "{none}");
    }
    let charts = [
        "Curves of Kept out of context, Returned in bytes a second",
        "Curves of Calls, Errors in calls a second",
        "Curves of Running calls, Open streams in calls and streams in progress",
    ];
    assert_eq!(seen["charts"], json!(charts));
    // A row for each step, and that of the headings.
    assert_eq!((&seen["rows"], seen["headings"].as_array().unwrap().len()), (&json!(301), 7));
    // The last two columns: nothing runs, and one client listens.
    let newest = seen["newest"].as_array().unwrap();
    assert_eq!(newest[newest.len() - 2..], [json!("0"), json!("1")], "{newest:?}");
    assert_eq!(seen["hidden"], json!(["session"]));
    assert_eq!(seen["visible"], json!(["traffic", "session"]));
}

#[tokio::test]
#[ignore = "needs Chromium: make browser-test"]
async fn a_person_logs_in_at_the_authorization_server() {
    // Another site than that of the provider, which is at 127.0.0.1.
    let site = Site::with(Provider::shared().await, "localhost", |_| {}).await;
    let port = site.server.address.port();
    let given = json!({
        "chromium": "/usr/bin/chromium",
        "url": format!("http://localhost:{port}/console/"),
        "screenshots": std::env::var("SCREENSHOTS").ok(),
    });
    let seen = walk("console_login.mjs", &given, async || {}).await;
    assert_eq!(seen["failed"], Value::Null, "{seen}");
    assert_eq!(seen["errors"], json!([]));
    assert_eq!(seen["button"], "Log in at 127.0.0.1");
    assert_eq!(seen["path"], "/console/");
    assert!(seen["user"].as_str().unwrap().contains("alice"), "{seen}");
    assert_eq!(seen["cookies"], json!([["larder-console", "/console", true, "Strict"]]));
    assert_eq!(seen["victim"], json!([]));
    assert_eq!(seen["loggedOut"], true);
}

/// What was seen. `store` runs when the list is open.
pub(crate) async fn walk(script: &str, given: &Value, store: impl AsyncFnOnce()) -> Value {
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/content");
    let mut command = Command::new("node");
    command.arg(package.join(script)).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(given.to_string().as_bytes()).await.unwrap();
    drop(stdin);
    let mut stdout = child.stdout.take().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    let walking = async {
        let mut said = String::new();
        while let Some(line) = errors.next_line().await.unwrap() {
            if line == "store" {
                break;
            }
            said += &format!("{line}\n");
        }
        store().await;
        let mut seen = String::new();
        stdout.read_to_string(&mut seen).await.unwrap();
        serde_json::from_str(&seen).unwrap_or_else(|error| panic!("{error}: {said}{seen}"))
    };
    tokio::time::timeout(Duration::from_secs(300), walking).await.expect("the walk ends")
}
