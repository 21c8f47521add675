//! `larder share`, `larder url` and `larder open`: links to a resource.

use clap::Args;
use serde_json::{Value, json};

use super::{ClientError, McpClient, ServerArgs, browser, parse_ttl, print_json, print_text};

#[derive(Debug, Args)]
pub(in crate::cli) struct ShareArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// The URI of the resource.
    uri: String,
    /// Only for callers with this scope.
    #[arg(long, value_name = "SCOPE", conflicts_with = "group")]
    scope: Option<String>,
    /// Only for callers in this group.
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// When the link ends, such as 90s, 1h or 7d; with the resource by default.
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, allow_hyphen_values = true)]
    ttl: Option<f64>,
    /// Print the link as a line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct UrlArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    download: DownloadArgs,
    /// The URL works once, and shows a page with a button first.
    #[arg(long)]
    once: bool,
    /// Print the URL and its end as a line of JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct OpenArgs {
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    download: DownloadArgs,
}

#[derive(Debug, Args)]
struct DownloadArgs {
    /// The URI of the resource.
    uri: String,
    /// When the URL ends, such as 90s, 1h or 7d; after ten minutes by default.
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, allow_hyphen_values = true)]
    expires: Option<f64>,
}

impl DownloadArgs {
    /// The `download` of the server's answer, and its text for people.
    async fn request(
        self,
        client: &McpClient,
        more: &[(&str, bool)],
    ) -> Result<Value, ClientError> {
        let mut arguments = json!({ "uri": self.uri });
        if let Some(expires) = self.expires {
            arguments["expires"] = json!(expires);
        }
        for (name, _) in more.iter().filter(|(_, is_set)| *is_set) {
            arguments[name] = json!(true);
        }

        let output = client.ask("download_url", &arguments).await?;
        let download = &output.structured()?["download"];
        match download["url"].as_str() {
            Some(_) => Ok(download.clone()),
            None => Err(ClientError::unexpected_reply()),
        }
    }
}

pub(super) async fn share(args: ShareArgs) -> Result<(), ClientError> {
    let (with, name) = match (args.scope, args.group) {
        (Some(scope), _) => ("scope", Some(scope)),
        (None, Some(group)) => ("group", Some(group)),
        (None, None) => ("everyone", None),
    };
    let mut arguments = json!({ "uri": args.uri, "with": with });
    if let Some(name) = name {
        arguments["name"] = json!(name);
    }
    if let Some(ttl) = args.ttl {
        arguments["ttl"] = json!(ttl);
    }

    let output = McpClient::new(args.server).await?.ask("share_resource", &arguments).await?;
    // The rest is for a model.
    let link = output.text.lines().next().unwrap_or_default();
    if args.json {
        return print_json(&json!({ "uri": link, "of": args.uri }));
    }
    print_text(&format!("{link}\n"))
}

pub(super) async fn url(args: UrlArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server).await?;
    let download = args.download.request(&client, &[("once", args.once)]).await?;

    if args.json {
        return print_json(&json!({ "url": download["url"], "expires": download["expiresAt"] }));
    }
    print_text(&format!("{}\n", download["url"].as_str().unwrap_or_default()))
}

pub(super) async fn open(args: OpenArgs) -> Result<(), ClientError> {
    let client = McpClient::new(args.server).await?;
    let download = args.download.request(&client, &[("inline", true)]).await?;
    let url = download["url"].as_str().and_then(browser::page);
    let url = url.ok_or_else(ClientError::unexpected_reply)?;

    if browser::open(&url) {
        return print_text(&format!("Opened {url}\n"));
    }
    print_text(&format!("No browser can be opened here. Open this URL: {url}\n"))
}
