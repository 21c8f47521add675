//! Tools that create, update and delete resources: search results and a PDF
//! report.

use larder::prelude::*;
use model::ContentBlock;

/// Searches, with more results than a model should read at once.
#[tool]
async fn search(
    ctx: &Context,
    /** The text to find. */
    query: String,
) -> Result<Vec<ContentBlock>> {
    let found = |n: usize| json!({ "id": n, "title": format!("{query} no. {n}") });
    let results: Vec<_> = (0..100_000).map(found).collect();
    let count = results.len();
    let entry = ctx
        .create_resource(
            format!("results://search/{}", ctx.request_id()),
            json!({ "data": results }),
        )
        .name("Analysis Results")
        .description("Detailed analysis output")
        .ttl(hours(2))
        .await?;
    let text = format!("Found {count} results. Access at {entry}");
    Ok(vec![ContentBlock::text(text), entry.to_link()])
}

/// Writes a report as a PDF.
#[tool]
async fn generate_pdf(ctx: &Context) -> Result<Vec<ContentBlock>> {
    let entry = ctx
        .create_resource(format!("output://pdf/{}.pdf", ctx.request_id()), pdf("All is well."))
        .mime_type("application/pdf")
        .ttl(minutes(30))
        .await?;
    Ok(vec![ContentBlock::text(format!("PDF generated: {entry}")), entry.to_link()])
}

/// Replaces results with new ones.
#[tool]
async fn update_results(
    ctx: &Context,
    /** The URI of the results. */
    uri: String,
    /** The new results. */
    new_data: Value,
) -> Result<String> {
    let entry = ctx.update_resource(uri, new_data).await?;
    Ok(format!("Updated {entry}"))
}

/// Deletes results that are no longer needed.
#[tool]
async fn cleanup(
    ctx: &Context,
    /** The URI of the results. */
    uri: String,
) -> Result<String> {
    ctx.delete_resource(&uri).await?;
    Ok(format!("Deleted {uri}"))
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

fn main() -> ExitCode {
    larder::server("dynamic-resources")
        .tool(search)
        .tool(generate_pdf)
        .tool(update_results)
        .tool(cleanup)
        .resource(Resource::text("results://about", "Results live here for two hours."))
        .reading()
        .run()
}
