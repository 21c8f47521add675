//! Tools that create, update and delete resources: search results and a PDF
//! report.

use std::time::Duration;

use larder::{
    Context, Registry, Resource, Tool, ToolError,
    tools::{self, ToolOptions},
};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};

/// Searches, with more results than a model should read at once.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Search {
    /// The text to find.
    query: String,
}

async fn search(ctx: Context, args: Search) -> Result<CallToolResult, ToolError> {
    let found = |n: usize| json!({ "id": n, "title": format!("{} no. {n}", args.query) });
    let results: Vec<_> = (0..100_000).map(found).collect();
    let count = results.len();
    let entry = ctx
        .create_resource(
            format!("results://search/{}", ctx.request_id()),
            json!({ "data": results }),
        )
        .name("Analysis Results")
        .description("Detailed analysis output")
        .ttl(Duration::from_secs(7200))
        .await?;
    let text = format!("Found {count} results. Access at {entry}");
    Ok(CallToolResult::success(vec![ContentBlock::text(text), entry.to_link()]))
}

/// Writes a report as a PDF.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct GeneratePdf;

async fn generate_pdf(ctx: Context, _: GeneratePdf) -> Result<CallToolResult, ToolError> {
    let entry = ctx
        .create_resource(format!("output://pdf/{}.pdf", ctx.request_id()), pdf("All is well."))
        .mime_type("application/pdf")
        .ttl(Duration::from_secs(1800))
        .await?;
    let text = format!("PDF generated: {entry}");
    Ok(CallToolResult::success(vec![ContentBlock::text(text), entry.to_link()]))
}

/// Replaces results with new ones.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct UpdateResults {
    /// The URI of the results.
    uri: String,
    /// The new results.
    new_data: Value,
}

async fn update_results(ctx: Context, args: UpdateResults) -> Result<String, ToolError> {
    let entry = ctx.update_resource(args.uri, args.new_data).await?;
    Ok(format!("Updated {entry}"))
}

/// Deletes results that are no longer needed.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Cleanup {
    /// The URI of the results.
    uri: String,
}

async fn cleanup(ctx: Context, args: Cleanup) -> Result<String, ToolError> {
    ctx.delete_resource(&args.uri).await?;
    Ok(format!("Deleted {}", args.uri))
}

/// A PDF file with one line of text (ISO 32000-1, 7.5).
fn pdf(line: &str) -> Vec<u8> {
    let drawing = format!("BT /F1 24 Tf 72 720 Td ({line}) Tj ET");
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>".to_owned(),
        format!("<< /Length {} >>\nstream\n{drawing}\nendstream", drawing.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
    ];
    let mut file = "%PDF-1.7\n".to_owned();
    let mut table = "0000000000 65535 f \n".to_owned();
    for (index, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", file.len());
        file += &format!("{} 0 obj\n{object}\nendobj\n", index + 1);
    }
    let (count, start) = (objects.len() + 1, file.len());
    file += &format!(
        "xref\n0 {count}\n{table}trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n"
    );
    file.into_bytes()
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        Registry::builder("dynamic-resources")
            .tool(Tool::new(search))
            .tool(Tool::new(generate_pdf))
            .tool(Tool::new(update_results))
            .tool(Tool::new(cleanup))
            .resource(Resource::text("results://about", "Results live here for two hours."))
            .with(tools::reading(ToolOptions::default()))
            .build()
    })
}
