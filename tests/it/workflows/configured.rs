//! Workflows in a configuration file.

use serde_json::json;

use super::{resources, texts};
use crate::support::{
    Modern, TextFile,
    process::{larder, refused, run, serving},
};

const DIGEST: &str = r#"
[[workflows]]
name = "digest"
description = "Digest a resource"
also = "tool"

[[workflows.arguments]]
name = "uri"
description = "Which resource"
required = true

[[workflows.steps]]
name = "describe"
tool = "describe_resource"
arguments = { uri = { prompt_arg = "uri" } }

[[workflows.steps]]
name = "read"
resources = [{ uri = { prompt_arg = "uri" } }]
"#;

#[tokio::test]
async fn a_configured_workflow_is_a_prompt_and_a_tool() {
    let file = TextFile::new(DIGEST);
    let checked = run(larder(&["config", "check", "--config", file.path()])).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let (_larder, url) = serving(&["--config", file.path()]).await;
    let client = Modern::at(&url);
    client.create(json!({ "uri": "notes://one", "text": "A note." })).await;
    let params = json!({ "name": "digest", "arguments": { "uri": "notes://one" } });
    let prompt = client.send("prompts/get", params).await.result();
    assert_eq!(resources(&prompt)[0]["text"], "A note.");
    assert!(texts(&prompt).contains("I call describe_resource"));
    let result = client.call("digest", json!({ "uri": "notes://one" })).await;
    assert!(result.text().contains("A note."), "{result:?}");
}

/// The number of the line, from 1, on which `part` begins.
fn line(text: &str, part: &str) -> usize {
    1 + text[..text.find(part).unwrap()].matches('\n').count()
}

#[tokio::test]
async fn a_faulty_workflow_is_reported_with_file_and_line() {
    let unknown_tool = DIGEST.replace("\"describe_resource\"", "\"describe\"");
    let unknown_argument =
        DIGEST.replace("[{ uri = { prompt_arg = \"uri\"", "[{ uri = { prompt_arg = \"url\"");
    let no_steps = format!("{}steps = []\n", &DIGEST[..DIGEST.find("also").unwrap()]);
    let unknown_key = DIGEST.replace("tool = \"describe", "tol = \"describe");
    let no_source =
        DIGEST.replace("arguments = { uri = { prompt_arg", "arguments = { uri = { prompt");
    let no_toml = DIGEST.replace("also = \"tool\"", "also =");
    for (text, place, words) in [
        (
            unknown_tool,
            "\"describe\"\ntool",
            &["digest", "step \"describe\"", "no tool \"describe\""][..],
        ),
        (unknown_argument, "\"read\"", &["step \"read\"", "\"url\"", "declared: uri"]),
        (no_steps, "\"digest\"", &["digest", "no steps"]),
        (unknown_key, "tol =", &["tol"]),
        (no_source, "arguments = { uri", &["prompt"]),
        (no_toml, "also =", &[]),
    ] {
        let file = TextFile::new(&text);
        let path = file.path();
        let place = format!("{path}:{}: ", line(&text, place));
        for command in [&["config", "check", "--config", path][..], &["serve", "--config", path]] {
            let (code, said) = refused(command, &[]).await;
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains(&place), "{place} is not in {said}");
            for word in words {
                assert!(said.contains(word), "{word} is not in {said}");
            }
        }
    }
}

const STORES: &str = r#"
[[workflows]]
name = "keep"
description = "Store a text and read it"

[[workflows.arguments]]
name = "text"
description = "The text"
required = true

[[workflows.steps]]
name = "store"
tool = "create_resource"
arguments = { text = { prompt_arg = "text" } }
bind = "stored"

[[workflows.steps]]
name = "read"
resources = [{ uri = { step = "stored", field = "uri" } }]
"#;

#[tokio::test]
async fn a_configured_workflow_uses_what_its_step_stored() {
    let file = TextFile::new(STORES);
    let (_larder, url) = serving(&["--config", file.path()]).await;
    let params = json!({ "name": "keep", "arguments": { "text": "A note." } });
    let prompt = Modern::at(&url).send("prompts/get", params).await.result();
    assert_eq!(resources(&prompt)[0]["text"], "A note.", "{prompt}");
}
