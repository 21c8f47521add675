//! The preview that replaces a large result, and reading on from it.

use serde_json::json;

use super::{call, link, links, proposed, server, table, text};
use crate::support::{Modern, numbered_lines};

#[tokio::test]
async fn the_text_names_uri_size_expiry_completeness_and_the_next_calls() {
    let server = server().await;
    let client = Modern::of(&server);
    let whole = numbered_lines(5_000);
    let result = call(&client, "lines", 5_000).await;
    let (said, uri) = (text(&result), link(&result));
    assert!(uri.starts_with("larder://r/lines/"), "{uri}");
    assert!(said.starts_with("PREVIEW ONLY: this is not the whole result of lines."), "{said}");
    let size = format!(
        "{},{:03},{:03}",
        whole.len() / 1_000_000,
        whole.len() / 1000 % 1000,
        whole.len() % 1000
    );
    let size = size.trim_start_matches("0,");
    assert!(said.contains(&format!("text/plain, {size} bytes, 5,000 lines")), "{said}");
    let listed = client.list("resources/list", "resources").await;
    assert_eq!((&listed[0]["uri"], &listed[0]["size"]), (&json!(uri), &json!(whole.len())));
    assert!(said.contains("expires at 19") || said.contains("expires at 20"), "{said}");
    assert!(
        said.contains("\n\nLines 1-") && said.contains(" of 5,000 lines:\n00000000 év"),
        "{said}"
    );
    assert!(said.contains("The last ") && said.contains("\n00004999 év"), "{said}");
    assert!(said.len() <= 1_500, "{}", said.len());
    assert!(said.lines().any(|line| line == uri), "the URI ends its line: {said}");
    // The whole result is stored, and the proposed calls work unchanged.
    assert_eq!(client.read(&uri).await["text"], whole);
    let proposed = proposed(said);
    assert_eq!(
        proposed.iter().map(|(tool, _)| tool.as_str()).collect::<Vec<_>>(),
        ["read_resource", "search_resource"]
    );
    for (tool, mut arguments) in proposed {
        if tool == "search_resource" {
            arguments["query"] = json!("^00004321");
        }
        let answer = client.call(&tool, arguments).await.text();
        let expected = if tool == "search_resource" { "00004321 év" } else { "00000099 év" };
        assert!(answer.contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn a_first_look_is_short_and_has_an_example_record() {
    let server = server().await;
    let client = Modern::of(&server);
    for (tool, records, example) in [
        ("table", "Records: 10,000;", "0,\"name, 0\",0.5"),
        ("json", "Records: 10,000 at /rows;", "\"name\":\"row number 0\""),
        ("rows", "Records: 10,000 at /rows;", "\"name\":\"row number 0\""),
    ] {
        let result = call(&client, tool, 10_000).await;
        let said = text(&result);
        assert!(said.len() <= 1_500, "{tool}: {}", said.len());
        for part in [records, example, "Next: read_resource {"] {
            assert!(said.contains(part), "{tool} {part}: {said}");
        }
    }
}

#[tokio::test]
async fn small_results_are_sent_unchanged() {
    let server = server().await;
    let client = Modern::of(&server);
    for tool in
        ["lines", "table", "json", "rows", "rows_and_words", "wrapped_text", "embedded", "with_ui"]
    {
        let result = call(&client, tool, 3).await;
        assert!(links(&result).is_empty() && !result.to_string().contains("PREVIEW"), "{result}");
    }
    assert!(client.list("resources/list", "resources").await.is_empty());
}

#[tokio::test]
async fn a_link_is_added_except_for_tools_with_a_user_interface() {
    let server = server().await;
    let client = Modern::of(&server);
    let result = call(&client, "lines", 5_000).await;
    let uri = link(&result);
    assert!(text(&result).contains(&uri));
    let result = call(&client, "with_ui", 5_000).await;
    assert!(links(&result).is_empty(), "{result}");
    let (_, arguments) = proposed(text(&result)).remove(0);
    assert_eq!(
        client.read(arguments["uri"].as_str().unwrap()).await["text"],
        numbered_lines(5_000)
    );
}

#[tokio::test]
async fn the_tools_alone_read_the_whole_result() {
    // A client needs only the text: neither listings, templates, links nor subscriptions.
    let server = server().await;
    let client = Modern::of(&server);
    let said = text(&call(&client, "lines", 3_000).await).to_owned();
    let (mut tool, mut arguments) = proposed(&said).remove(0);
    // The first call continues after the preview.
    let (_, shown) = said.split_once(" of 3,000 lines:\n").unwrap();
    let mut whole = shown.split("\n\n").next().unwrap().to_owned() + "\n";
    loop {
        let answer = client.call(&tool, arguments).await.text();
        let (head, content) = answer.split_once("\n\n").unwrap();
        whole += content;
        match proposed(head).pop() {
            Some(next) => (tool, arguments) = next,
            None => break,
        }
    }
    assert_eq!(whole, numbered_lines(3_000));
}

#[tokio::test]
async fn tools_that_read_are_annotated_and_bounded() {
    let server = server().await;
    let tools = Modern::of(&server).list("tools/list", "tools").await;
    for name in ["read_resource", "search_resource", "list_resources", "describe_resource"] {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
        assert_eq!(tool["annotations"]["openWorldHint"], false);
        assert!(tool["_meta"]["anthropic/maxResultSizeChars"].as_u64().unwrap() >= 32_000);
    }
}

#[tokio::test]
async fn a_description_has_the_shape_of_the_content() {
    let server = server().await;
    let client = Modern::of(&server);
    let uri = client.create(json!({ "text": table(50_000) , "mime_type": "text/csv"})).await;
    let said = client.call("describe_resource", json!({ "uri": uri })).await.text();
    assert!(said.contains("Table: 50,000 rows below a header line, 3 columns"), "{said}");
    assert!(said.contains("Lines 1-") && said.contains("49999,\"name, 49999\""), "{said}");
    assert!(said.len() < 5_000);
}
