//! Values that code returns, and calls that it makes.

use serde_json::json;

use super::coding;

#[tokio::test]
async fn code_returns_its_value() {
    let service = coding(&[]).await;
    for (code, value) in [
        ("return 1 + 1", json!(2)),
        ("return {a: [1, 'x', null]}", json!({ "a": [1, "x", null] })),
        ("return await Promise.all([1, Promise.resolve(2)])", json!([1, 2])),
        ("", json!(null)),
    ] {
        assert_eq!(service.value(code).await, value, "{code}");
    }
}

#[tokio::test]
async fn an_error_says_its_line_and_column() {
    let service = coding(&[]).await;
    for (code, said) in [
        ("return x", "ReferenceError: x is not defined (line 1, column 8)\nNo tool was called."),
        (
            "const a = 1;\n  return a.b.c",
            "TypeError: cannot read property 'c' of undefined (line 2, column 10)\nNo tool was called.",
        ),
        (
            "const a = ;",
            "SyntaxError: unexpected token in expression: ';' (line 1, column 11)\nNo tool was called.",
        ),
    ] {
        assert_eq!(service.failure(code).await, said, "{code}");
    }
}

#[tokio::test]
async fn a_large_value_is_stored_and_console_output_is_cut() {
    let service = coding(&[]).await;
    let result = service.run("return Array.from({ length: 9000 }, (_, n) => ({ n }))").await;
    let uri = result["content"].as_array().unwrap().iter().find_map(|block| block["uri"].as_str());
    let rows = service.rows(uri.unwrap(), "SELECT count(*), max(n) FROM t").await;
    assert_eq!(rows, json!([[9000, 8999]]));

    let result =
        service.run("for (let i = 0; i < 1e5; i++) console.log('line', i, { i }); return 1").await;
    assert_eq!(result["content"][0]["text"], "1");
    let console = result["content"][1]["text"].as_str().unwrap();
    assert!(
        console.starts_with(
            "console, cut (code.console_bytes):\nline 0 {\"i\":0}\nline 1 {\"i\":1}\n"
        ),
        "{console}"
    );
    assert!(console.len() < 4_200, "{} bytes", console.len());
}

#[tokio::test]
async fn code_is_a_resource_with_inputs_and_its_value_has_a_place() {
    let service = coding(&[]).await;
    service
        .store(
            "code:sum",
            "text/javascript",
            "return (await inputs.rows.value()).reduce((a, b) => a + b)",
        )
        .await;
    for (rows, sum) in [("[1,2,3]", "6"), ("[10]", "10")] {
        service.store("x:rows", "application/json", rows).await;
        let run = json!({ "uri": "code:sum", "inputs": { "rows": "x:rows" } });
        let result = service.call("run_code", run).await;
        assert_eq!(result["content"][0]["text"], sum, "{result}");
    }

    let run = json!({ "code": "return [{ a: 7 }]", "into": { "uri": "x:into" } });
    let result = service.call("run_code", run).await;
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!(service.rows("x:into", "SELECT a FROM t").await, json!([[7]]));

    let missing =
        service.call("run_code", json!({ "code": "", "inputs": { "a": "x:none" } })).await;
    assert_eq!(missing["isError"], true, "{missing}");
    let both = service.call("run_code", json!({ "code": "", "uri": "code:sum" })).await;
    assert_eq!(both["content"][0]["text"], "Give exactly one of code and uri.");
}

#[tokio::test]
async fn values_are_stored_in_memory_and_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let files = format!("file://{}", folder.path().display());
    for store in ["memory://", files.as_str()] {
        let service = coding(&[("LARDER_STORE__URL", store)]).await;
        let code =
            "const h = await larder.store([{ a: 1 }, { a: 2 }], { uri: 'x:1', name: 'Two' });
            return [h.uri, await h.jq('map(.a) | add'), await (await larder.open('x:1')).value()]";
        assert_eq!(
            service.value(code).await,
            json!(["x:1", [3], [{ "a": 1 }, { "a": 2 }]]),
            "{store}"
        );
    }
}
