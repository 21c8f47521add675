#![allow(clippy::unwrap_used)]

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Catalogue, CataloguePool, CatalogueSource, MAX_ITEMS, MAX_PAGES, PageLimits, Reading};
use crate::{
    budget::{MessageBudget, tests::of},
    link::{Era, Link},
    message::{Assembly, Calls},
    names::Naming,
    settings::Settings,
};

const MIB: usize = 1 << 20;

/// The state that the connections of an upstream share.
struct Shared {
    settings: Arc<Settings>,
    naming: Naming,
    pool: CataloguePool,
    budget: Arc<MessageBudget>,
}

/// An upstream's connections, with so much memory for its lists and for all messages.
fn shared(max_catalogue: usize, budget: &Arc<MessageBudget>) -> Shared {
    let mut settings = Settings::new("odd", vec!["odd".to_owned()]);
    settings.max_catalogue = max_catalogue;
    let naming = Naming { upstream: "odd".into(), is_prefixed: false, reserved: HashSet::new() };

    Shared {
        settings: Arc::new(settings),
        naming,
        pool: CataloguePool::default(),
        budget: Arc::clone(budget),
    }
}

/// Reads the lists of an upstream that answers a method and the number of a page so.
async fn load(
    shared: &Shared,
    answer: impl Fn(&str, usize) -> Value + Send + 'static,
) -> Arc<Catalogue> {
    let declared = json!({ "tools": {}, "prompts": {}, "resources": {} });
    let answer = move |method: &str, cursor: &Value| {
        let page = cursor.as_str().map_or(0, |cursor| cursor.parse().unwrap());
        json!({ "result": answer(method, page) })
    };
    load_declared(shared, declared, answer).await
}

/// Reads the lists of an upstream that declares these capabilities and answers a method and a cursor
/// so.
async fn load_declared(
    shared: &Shared,
    declared: Value,
    answer: impl Fn(&str, &Value) -> Value + Send + 'static,
) -> Arc<Catalogue> {
    let settings = Arc::clone(&shared.settings);
    let (link, mut outgoing) = Link::new(settings, Arc::clone(&shared.budget), json!({}));
    link.set_era(Era::Legacy, serde_json::from_value(declared).unwrap());

    let upstream = Arc::clone(&link);
    let answering = tokio::spawn(async move {
        while let Some(request) = outgoing.recv().await {
            let request: Value = serde_json::from_slice(&request).unwrap();
            let Some(id) = request["id"].as_i64() else { continue };
            let method = request["method"].as_str().unwrap();
            let mut message = answer(method, &request["params"]["cursor"]);
            message["jsonrpc"] = json!("2.0");
            message["id"] = json!(id);
            receive(&upstream, message.to_string().into()).await;
        }
    });

    let source = CatalogueSource {
        settings: &shared.settings,
        naming: &shared.naming,
        pool: &shared.pool,
        budget: &shared.budget,
    };
    let limit = shared.settings.call_timeout;
    let limits = PageLimits { tools: limit, others: limit };
    let reading = Reading { link: &link, earlier: None, limits, is_fresh: false };
    let catalogue = Catalogue::load(source, reading).await.unwrap().catalogue;

    answering.abort();
    catalogue
}

async fn receive(link: &Link, message: Bytes) {
    let calls: &dyn Calls = link;
    let mut arriving = Assembly::of(usize::MAX, calls, None);
    for piece in message.chunks(8 << 10) {
        arriving.push(piece).await.unwrap();
    }
    link.receive(crate::link::MessageSource::Shared, arriving.finish()).await;
}

/// The member that has the items of a list, and an item.
fn item(method: &str, number: usize, size: usize) -> (&'static str, Value) {
    let description = "x".repeat(size);
    match method {
        "tools/list" => (
            "tools",
            json!({ "name": format!("t{number}"), "description": description, "inputSchema": { "type": "object" } }),
        ),
        "prompts/list" => {
            ("prompts", json!({ "name": format!("p{number}"), "description": description }))
        }
        "resources/list" => (
            "resources",
            json!({ "uri": format!("a:{number}"), "name": "r", "description": description }),
        ),
        _ => (
            "resourceTemplates",
            json!({ "uriTemplate": format!("a:{number}/{{x}}"), "name": "t", "description": description }),
        ),
    }
}

/// A page of some items, with the cursor of the next page.
fn page(method: &str, page: usize, items: usize, size: usize) -> Value {
    let mut result = json!({ "nextCursor": (page + 1).to_string() });
    let all: Vec<_> = (0..items).map(|n| item(method, page * items + n, size)).collect();
    let member = all.first().map_or("none", |(member, _)| member);
    result[member] = all.into_iter().map(|(_, item)| item).collect();
    result
}

#[tokio::test]
async fn a_cursor_that_is_no_text_costs_no_item() {
    let tools = json!({ "tools": {} });
    for (cursor, items, cut) in [
        (json!(7), 2, None),
        (json!(0), 2, None),
        (json!("x"), 2, None),
        (json!(false), 1, None),
        (json!(""), 1, None),
        (json!(null), 1, None),
        (json!(true), 1, Some("nextCursor must be a text or a number, not true")),
        (json!({ "a": 1 }), 1, Some("nextCursor must be a text or a number, not {\"a\":1}")),
        (json!([]), 1, Some("nextCursor must be a text or a number, not []")),
        (json!("x".repeat(20_000)), 1, Some("nextCursor must have at most 16384 bytes")),
    ] {
        let shared = shared(2 * MIB, &of(32 * MIB));
        let sent = cursor.clone();
        let answer = move |method: &str, cursor: &Value| {
            let (member, first) = item(method, 1, 1);
            if cursor.is_null() {
                return json!({ "result": { member: [first], "nextCursor": sent } });
            }
            // The cursor comes back as it was sent.
            let rest = if *cursor == sent { vec![item(method, 2, 1).1] } else { Vec::new() };
            json!({ "result": { member: rest } })
        };

        let catalogue = load_declared(&shared, tools.clone(), answer).await;
        assert_eq!(catalogue.items(), items, "{cursor}");
        let cuts = cuts(&catalogue);
        assert_eq!(cuts.len(), usize::from(cut.is_some()), "{cuts:?}");
        assert!(cut.is_none_or(|cut| cuts[0].contains(cut)), "{cuts:?}");
    }
}

#[tokio::test]
async fn an_upstream_that_declares_no_list_is_asked_for_all() {
    for declared in [json!({}), json!(null), json!([]), json!({ "logging": {} })] {
        let shared = shared(2 * MIB, &of(32 * MIB));
        let answer = |method: &str, _: &Value| match method {
            "tools/list" => json!({ "result": { "tools": [item(method, 1, 1).1] } }),
            _ => json!({ "error": { "code": -32601, "message": "unknown" } }),
        };
        let catalogue = load_declared(&shared, declared.clone(), answer).await;
        assert_eq!((catalogue.items(), cuts(&catalogue)), (1, Vec::new()), "{declared}");
    }

    // Declared lists must be there, and no other list is asked for.
    let shared = shared(2 * MIB, &of(32 * MIB));
    let answer = |_: &str, _: &Value| json!({ "error": { "code": -32601, "message": "unknown" } });
    let catalogue = load_declared(&shared, json!({ "prompts": {} }), answer).await;
    let cuts = cuts(&catalogue);
    assert!(cuts.len() == 1 && cuts[0].starts_with("prompts/list"), "{cuts:?}");
}

#[tokio::test]
async fn an_item_without_a_name_is_left_out_for_this_reason() {
    let shared = shared(2 * MIB, &of(32 * MIB));
    let catalogue = load(&shared, |method, _| match method {
        "tools/list" => {
            let schema = json!({ "type": "object" });
            let named = |name: Value| json!({ "name": name, "inputSchema": schema });
            json!({ "tools": [named(json!(null)), named(json!(5)), {}, named(json!("")), named(json!(" ")), named(json!("t"))] })
        }
        _ => json!({}),
    })
    .await;

    let left_out = catalogue.left_out();
    let reasons = [
        "it has no name",
        "its name must be a text, not 5",
        "it has no name",
        "its name is empty",
        "its name is empty",
    ];
    assert_eq!((catalogue.items(), left_out.len()), (1, reasons.len()));
    for (left_out, reason) in left_out.iter().zip(reasons) {
        assert!(left_out.ends_with(reason), "{left_out}");
    }
}

fn cuts(catalogue: &Catalogue) -> Vec<String> {
    catalogue.cuts.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn every_list_without_end_is_cut_where_its_memory_ends() {
    for endless in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let budget = of(32 * MIB);
        let shared = shared(2 * MIB, &budget);
        let catalogue = load(&shared, move |method, number| {
            if method == endless { page(method, number, 10, 9_000) } else { json!({}) }
        })
        .await;

        let expected =
            format!("{endless} is cut: all lists are over 2 MiB (upstreams.max_catalogue)");
        assert_eq!(cuts(&catalogue), [expected]);
        assert!((200..230).contains(&catalogue.items()), "{}", catalogue.items());

        let used = budget.used();
        assert!((MIB..3 * MIB).contains(&used), "{used}");
        drop(catalogue);
        assert_eq!(budget.used(), 0);
    }
}

#[tokio::test]
async fn lists_of_many_items_or_pages_and_circles_are_cut() {
    let budget = of(512 * MIB);
    let shared = shared(128 * MIB, &budget);
    let tools_only = |method: &str| method == "tools/list";

    let many =
        load(
            &shared,
            move |method, number| {
                if tools_only(method) { page(method, number, 3_000, 1) } else { json!({}) }
            },
        );
    let many = many.await;

    assert_eq!(cuts(&many), ["tools/list is cut: it has more than 10000 items"]);
    assert_eq!(many.tools.len(), MAX_ITEMS);

    let empty = load(&shared, move |method, number| {
        if tools_only(method) {
            json!({ "nextCursor": (number + 1).to_string() })
        } else {
            json!({})
        }
    });
    assert_eq!(
        cuts(&*empty.await),
        [format!("tools/list is cut: it has more than {MAX_PAGES} pages")]
    );

    let circle =
        load(
            &shared,
            move |method, _| {
                if tools_only(method) { json!({ "nextCursor": "7" }) } else { json!({}) }
            },
        );
    assert_eq!(cuts(&*circle.await), ["tools/list is cut: one of its cursors comes again"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_without_room_beside_others_is_cut_for_now() {
    let budget = of(MIB);
    let shared = shared(64 * MIB, &budget);

    // Short messages need no threads of their own, for which a paused clock would not wait.
    let catalogue = load(&shared, |method, number| {
        if method == "tools/list" { page(method, number, 1, 10_000) } else { json!({}) }
    });
    let catalogue = catalogue.await;

    let [cut] = &*catalogue.cuts else { panic!("{:?}", catalogue.cuts) };
    let expected = "tools/list is cut: there is no room beside other lists and messages, of 1 MiB (limits.upstream_bytes)";
    assert_eq!((cut.to_string().as_str(), cut.is_transient()), (expected, true));
    assert!(catalogue.tools.len() > 20, "{}", catalogue.tools.len());
}

#[tokio::test]
async fn templates_that_cannot_be_read_are_told_and_cost_no_other_list() {
    let budget = of(32 * MIB);
    let shared = shared(2 * MIB, &budget);
    let catalogue = load(&shared, |method, number| match method {
        // The second page is not a list.
        "resources/templates/list" if number == 1 => json!(5),
        _ if number == 0 => {
            let mut page = page(method, 0, 1, 10);
            if method != "resources/templates/list" {
                page["nextCursor"] = Value::Null;
            }
            page
        }
        _ => json!({}),
    })
    .await;

    assert_eq!(cuts(&catalogue), ["resources/templates/list cannot be read (error)"]);
    assert!(catalogue.cuts[0].is_transient());
    assert_eq!((catalogue.items(), catalogue.templates.len()), (4, 1));
}

#[tokio::test]
async fn sessions_that_are_offered_the_same_share_it() {
    let budget = of(256 * MIB);
    let shared = shared(64 * MIB, &budget);
    let answer = |description: usize| {
        move |method: &str, _: usize| {
            let mut page = page(method, 0, 500, description);
            page["nextCursor"] = Value::Null;
            page
        }
    };

    let first = load(&shared, answer(9_000)).await;
    let used = budget.used();
    assert!(used > 500 * 9_000 * 4, "{used}");

    let mut others = Vec::new();
    for _ in 0..11 {
        others.push(load(&shared, answer(9_000)).await);
    }

    assert!(others.iter().all(|other| Arc::ptr_eq(&first, other)));
    assert_eq!(budget.used(), used);
    assert!(first.changes_since(&others[0]).is_empty());

    // A session with another list shares the items that are equal.
    let other = load(&shared, |method, number| {
        let mut page = if method == "tools/list" {
            page(method, number, 600, 9_000)
        } else {
            page(method, number, 500, 9_000)
        };
        page["nextCursor"] = Value::Null;
        page
    });
    let other = other.await;

    assert_eq!(other.changes_since(&first).len(), 1);
    assert!(budget.used() < used + 200 * 9_000, "{}", budget.used() - used);

    drop((first, others, other));
    assert_eq!(budget.used(), 0);
}
