//! Code that wants more than it may have: each script ends, and the server answers the next call.

use serde_json::{Value, json};

use super::coding;

/// How a script ends.
enum End {
    /// The code returns this value.
    Value(Value),
    /// Its error begins with this text.
    Error(&'static str),
}

fn is(value: Value) -> End {
    End::Value(value)
}

fn undefined() -> End {
    is(json!("undefined"))
}

/// Runs each script on a server with these variables.
async fn check(environment: &[(&str, &str)], scripts: Vec<(&str, End)>) {
    let service = coding(environment).await;
    for (script, end) in scripts {
        match end {
            End::Value(value) => assert_eq!(service.value(script).await, value, "{script}"),
            End::Error(start) => {
                let said = service.failure(script).await;
                assert!(said.starts_with(start), "{script}: {said}");
            }
        }
    }
    assert_eq!(service.value("return 1").await, 1);
}

const CLOCK: &str = "TypeError: The code has no clock: pass it as a value.";
const RANDOM: &str = "TypeError: The code has no random numbers: pass it as a value.";

#[tokio::test]
async fn a_script_has_neither_files_nor_a_network_nor_a_clock() {
    let scripts = vec![
        ("return typeof require", undefined()),
        ("return typeof process", undefined()),
        ("return typeof fetch", undefined()),
        ("return typeof XMLHttpRequest", undefined()),
        ("return typeof WebSocket", undefined()),
        ("return typeof setTimeout", undefined()),
        ("return typeof setInterval", undefined()),
        ("return typeof std", undefined()),
        ("return typeof os", undefined()),
        ("return typeof Deno", undefined()),
        ("return typeof Worker", undefined()),
        ("return typeof WebAssembly", undefined()),
        ("return typeof performance", undefined()),
        ("return typeof globalThis.host", undefined()),
        ("return Object.keys(globalThis).includes('answer')", is(json!(false))),
        ("return (function () { return this })() === undefined", is(json!(true))),
        ("await import('std')", End::Error("ReferenceError: could not load module 'std'")),
        ("await import('os')", End::Error("ReferenceError: could not load module 'os'")),
        (
            "await import('/etc/passwd')",
            End::Error("ReferenceError: could not load module '/etc/passwd'"),
        ),
        (
            "return await eval(\"import('fs')\")",
            End::Error("ReferenceError: could not load module 'fs'"),
        ),
        ("return new Date()", End::Error(CLOCK)),
        ("return Date.now()", End::Error(CLOCK)),
        ("return Date()", End::Error(CLOCK)),
        ("return Reflect.construct(Date, [])", End::Error(CLOCK)),
        ("return new (new Date(0).constructor)()", End::Error(CLOCK)),
        ("return new (Object.getPrototypeOf(new Date(0)).constructor)()", End::Error(CLOCK)),
        ("return Function('return Date.now()')()", End::Error(CLOCK)),
        ("return new Date(0).toISOString()", is(json!("1970-01-01T00:00:00.000Z"))),
        ("return new Date(0).getTimezoneOffset()", is(json!(0))),
        ("return Math.random()", End::Error(RANDOM)),
        ("return [1, 2].sort(() => Math.random())", End::Error(RANDOM)),
        ("import fs from 'fs'; return 1", End::Error("SyntaxError: ")),
    ];
    check(&[], scripts).await;
}

#[tokio::test]
async fn a_script_that_needs_too_much_time_ends() {
    const TIME: &str = "Stopped after 1 s (code.seconds).";
    let endless = [
        "while (true);",
        "for (;;) {}",
        "do {} while (1)",
        "await null; while (true);",
        "while (true) await null",
        "while (true) { try { while (true); } catch { } finally { } }",
        "const f = async () => { await null; return f() }; return f()",
        "const f = () => Promise.resolve().then(f); return f()",
        "const f = () => queueMicrotask(f); f(); await new Promise(() => {})",
        "eval('for (;;);')",
        "new Function('while (1);')()",
        "function* g() { while (true) yield 1 } for (const x of g());",
        "for await (const x of (async function* () { while (true) yield 1 })());",
        "[...{ [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 0 * 1 }) }) }].length = 0; while (1);",
        "return /(a+)+$/.test('a'.repeat(60) + 'b')",
        "return /^(([a-z])+.)+[A-Z]([a-z])+$/.test('a'.repeat(60))",
        "return /(x+x+)+y/.test('x'.repeat(60))",
        "return /(.*)*(.*)*(.*)*$b/s.test('z'.repeat(200))",
        "return { get a() { while (true); } }",
        "return { toJSON() { for (;;); } }",
        "return { then(resolve) { for (;;); } }",
        "return `${{ toString() { for (;;); } }}`",
        "return [3, 2, 1].sort(() => { for (;;); })",
        "return new Proxy({}, { ownKeys() { for (;;); } })",
        "class A { static { for (;;); } }",
        "await call('list_resources', { get query() { for (;;); } })",
        "console.log({ toJSON() { for (;;); } })",
        "throw { get message() { for (;;); }, toJSON() { for (;;); } }",
        "Promise.prototype.then = () => { for (;;); }; return await larder.open('x:1')",
        "Map.prototype.get = () => { for (;;); }; return await larder.open('x:1')",
    ];

    let service = coding(&[("LARDER_CODE__SECONDS", "1")]).await;
    for script in endless {
        let said = service.failure(script).await;
        assert!(said.starts_with(TIME), "{script}: {said}");
    }
    assert_eq!(service.value("return 1").await, 1);
}

#[tokio::test]
async fn a_script_that_needs_too_much_memory_or_stack_ends() {
    const MEMORY: &str = "It needs more than 128 MiB (code.memory_bytes)";
    const STACK: &str = "RangeError: Maximum call stack size exceeded";
    let memory = |script| (script, End::Error(MEMORY));
    let stack = |script| (script, End::Error(STACK));

    let scripts = vec![
        memory("const a = []; while (true) a.push('x'.repeat(1000) + a.length)"),
        memory("const a = []; while (true) a.push(new Array(1000).fill(a.length))"),
        memory("return new Array(100_000_000).fill(0).length"),
        memory("return Array.from({ length: 2 ** 27 }, (_, i) => i).length"),
        (
            "let s = 'x'; while (true) s = s + s + Math.max(s.length, 1)",
            End::Error("InternalError: string too long (line 1, column 35)"),
        ),
        memory("return new ArrayBuffer(2 ** 30).byteLength"),
        memory("const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })"),
        memory("const all = []; for (;;) all.push(new Uint8Array(1 << 20))"),
        memory("let a = []; for (;;) a = [a, a.slice(), 'x'.repeat(9999) + Math.abs(1)]"),
        memory("for (let i = 0; ; i++) globalThis['x' + i] = 'y'.repeat(1000) + i"),
        memory("const f = []; for (;;) f.push(() => f)"),
        memory("for (let i = 0; ; i++) larder.open('x:' + i)"),
        stack("const f = () => f() + 1; return f()"),
        stack("const f = (n) => [n].map(f); return f(1)"),
        stack("const o = { toString() { return `${o}` } }; return `${o}`"),
        stack("const o = { get a() { return this.a } }; return o.a"),
        stack("const p = new Proxy({}, { get: (t, k, r) => r[k] }); return p.x"),
        stack("class A { constructor() { new A() } } new A()"),
        memory("let a = []; for (let i = 0; i < 1e6; i++) a = [a]; return a"),
    ];
    let limits = [("LARDER_CODE__SECONDS", "300"), ("LARDER_CODE__MEMORY_BYTES", "134217728")];
    check(&limits, scripts).await;
}

#[tokio::test]
async fn a_script_cannot_call_past_the_rules() {
    let scripts = vec![
        ("await call('nothing', {})", End::Error("ToolError: nothing was not called: ")),
        ("await call('__proto__', {})", End::Error("ToolError: __proto__ was not called: ")),
        ("await call('constructor', {})", End::Error("ToolError: constructor was not called: ")),
        (
            "await call('run_code', { code: 'return 1' })",
            End::Error("ToolError: run_code was not called: code calls tools by their own names."),
        ),
        (
            "await call('call_tool', { name: 'delete_resource' })",
            End::Error("ToolError: call_tool was not called: code calls tools by their own names."),
        ),
        (
            "await call('list_resources', [])",
            End::Error(
                "ToolError: list_resources was not called: its arguments must be one object.",
            ),
        ),
        (
            "await call('list_resources', { _larder: { jq: '.' } })",
            End::Error("ToolError: list_resources was not called: _larder is for calls outside"),
        ),
        (
            "await call('delete_' + 'resource', { uri: 'x:1' })",
            End::Error(
                "ToolError: delete_resource was not called: it does not say that it only reads, and the code does not have its name",
            ),
        ),
        (
            "await call('delete_resource', { uri: 'x:1' })",
            End::Error(
                "ToolError: delete_resource was not called: it does not say that it only reads, and the user cannot be asked",
            ),
        ),
        (
            "const a = {}; a.a = a; await call('list_resources', a)",
            End::Error("TypeError: circular reference"),
        ),
        (
            "await call('list_resources', { limit: 10n })",
            End::Error("TypeError: BigInt are forbidden in JSON.stringify"),
        ),
        (
            "await call('list_resources', { query: 'x'.repeat(5e6) })",
            End::Error("RangeError: the arguments of a call have more than 4,194,304 bytes"),
        ),
        ("return 10n", End::Error("TypeError: BigInt are forbidden in JSON.stringify")),
        (
            "await new Promise(() => {})",
            End::Error("The code awaits a promise that nothing settles"),
        ),
        ("return { then() {} }", End::Error("The code awaits a promise that nothing settles")),
        ("}); (async () => { await null", is(json!(null))),
        ("return await larder.open('x:none').catch((e) => e.name)", is(json!("ToolError"))),
        ("JSON.stringify = () => '{'; return 1", is(json!(1))),
        ("JSON.parse = () => ({}); return 1", is(json!(1))),
        ("Object.prototype.toJSON = () => 7; return {}", is(json!(7))),
        ("throw null", End::Error("It needs more than")),
        ("throw undefined", End::Error("Thrown: undefined")),
        ("throw 'x'", End::Error("Thrown: x")),
        (
            "return 'x'.repeat(20 << 20)",
            End::Error("It returns a value of more than 16,777,216 bytes (code.result_bytes)"),
        ),
    ];
    check(&[], scripts).await;
}

#[tokio::test]
async fn the_limits_of_calls_name_their_settings() {
    let calls = [("LARDER_CODE__CALLS", "5")];
    let many = "for (let i = 0; i < 6; i++) await call('list_resources', {}); return 1";
    let at_once =
        "return await Promise.all(Array.from({ length: 6 }, () => call('list_resources', {})))";
    let limit = "It makes more than 5 calls (code.calls).\n";
    check(&calls, vec![(many, End::Error(limit)), (at_once, End::Error(limit))]).await;

    let bytes = [("LARDER_CODE__BYTES_IN", "2000")];
    let repeated = "while (true) await call('list_resources', {})";
    let limit = "The answers to its calls have more than 2,000 bytes together (code.bytes_in)";
    check(&bytes, vec![(repeated, End::Error(limit))]).await;
}

#[tokio::test]
async fn a_run_leaves_nothing_for_the_next_one() {
    let service = coding(&[]).await;
    service.value("globalThis.kept = 1; Array.prototype.kept = 2; return 1").await;
    assert_eq!(
        service.value("return [typeof kept, typeof [].kept]").await,
        json!(["undefined", "undefined"])
    );
}
