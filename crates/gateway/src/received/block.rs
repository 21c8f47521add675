//! Content blocks of results and prompts.

use rmcp::model::{ContentBlock, JsonObject, ResourceContents};
use serde_json::Value;

use super::{
    decoration,
    members::{Excess, LongMembers},
    object::Object,
    problem::{Problem, shown},
    shapes,
};

/// The most bytes of a member of a block of an unknown type that is shown with the others.
const MEMBER_BYTES: usize = 1_000;
/// The media type of data of an unknown type (RFC 2046, section 4.5.1).
const UNKNOWN_MEDIA_TYPE: &str = "application/octet-stream";

/// Reads the blocks of a result; a text in place of a block is one. A block that cannot be read is
/// left out, which a text in its place says. `excess` says what becomes of members that are too long.
///
/// # Errors
/// None of them can be read.
pub(super) fn read_all(content: Value, excess: Excess) -> Result<Vec<ContentBlock>, Problem> {
    let values = match content {
        Value::Array(values) => values,
        Value::String(text) => return Ok(vec![ContentBlock::text(text)]),
        one @ Value::Object(_) => vec![one],
        other => return Err(Problem::of("content must be a list of content blocks", &other)),
    };

    let mut blocks = Vec::with_capacity(values.len());
    let mut first_problem = None;
    let mut has_any = values.is_empty();
    for (index, value) in values.into_iter().enumerate() {
        let mut long = LongMembers::default();
        match read(value, &mut long) {
            Ok(read) => {
                has_any = true;
                blocks.extend(read);
                blocks.extend(long.note(&format!("content block {}", index + 1), excess));
            }
            Err(problem) => {
                let note = format!("(Content block {} is left out: {problem}.)", index + 1);
                blocks.push(ContentBlock::text(note));
                first_problem.get_or_insert(problem);
            }
        }
    }

    match first_problem {
        Some(problem) if !has_any => Err(problem),
        _ => Ok(blocks),
    }
}

/// Reads a block. One of a type that clients do not know becomes several that they know. One whose
/// meaning is in members that are too long becomes none.
fn read(value: Value, long: &mut LongMembers) -> Result<Vec<ContentBlock>, Problem> {
    if let Value::String(text) = value {
        return Ok(vec![ContentBlock::text(text)]);
    }
    let what = shown(&value);
    let mut block = Object::of(value, "a content block")?;
    long.take_from(&mut block, "");
    decoration::hints_for_readers(&mut block);
    block.drop_unfit::<JsonObject>("_meta");

    if block.get("type").is_none() && block.text("text").is_some() {
        block.set("type", "text");
    }

    let shape = match block.text("type") {
        Some("text") => {
            complete_text(&mut block, &what)?;
            &shapes::TEXT
        }
        Some("resource_link") if long.has("uri") => {
            long.add("link".to_owned(), block.into_value());
            return Ok(Vec::new());
        }
        Some("resource_link") => {
            complete_link(&mut block);
            &shapes::LINK
        }
        Some("image" | "audio") => {
            if long.has("mimeType") {
                block.set("mimeType", UNKNOWN_MEDIA_TYPE);
            }
            &shapes::MEDIA
        }
        Some("resource") => {
            complete_resource(&mut block, long);
            &shapes::EMBEDDED
        }
        _ => return unknown(block),
    };

    long.carry_others(&mut block, shape);
    let read = block.parse::<ContentBlock>("a content block");
    read.map(|block| vec![block]).map_err(|problem| Problem::new(format!("{problem}, in {what}")))
}

/// A text may be a number, or JSON.
fn complete_text(block: &mut Object, what: &str) -> Result<(), Problem> {
    match block.take("text") {
        Some(Value::String(text)) => block.set("text", text),
        Some(value) => block.set("text", value.to_string()),
        None => return Err(Problem::new(format!("a text block must have a text, not {what}"))),
    }
    Ok(())
}

/// A link without a name is called like the last part of its URI.
fn complete_link(link: &mut Object) {
    for member in ["title", "description", "mimeType"] {
        link.drop_unfit::<String>(member);
    }
    link.drop_unfit::<u64>("size");
    decoration::icons(link);
    decoration::name_by_uri(link, "uri");
}

/// An embedded resource, whose URI may be too long.
fn complete_resource(block: &mut Object, long: &mut LongMembers) {
    if !block.get("resource").is_some_and(Value::is_object) {
        // The parser says what is wrong.
        return;
    }
    let mut resource = Object::from(block.take_members("resource").unwrap_or_default());

    long.take_from(&mut resource, "resource.");
    if long.has("resource.uri") {
        resource.set("uri", "block:resource");
    }
    block.set("resource", resource.into_value());
}

/// A block of a type that clients do not know: its JSON as a text, and what is long in it by
/// itself.
fn unknown(mut block: Object) -> Result<Vec<ContentBlock>, Problem> {
    let Some(kind) = block.text("type").map(str::to_owned) else {
        return Err(Problem::of("a content block must have a type", &block.into_value()));
    };

    let mut long = |name: &str| {
        let is_long =
            block.text(name).is_some_and(|text| text.len() > MEMBER_BYTES || is_stored(text));
        if is_long { block.take_text(name) } else { None }
    };
    let text = long("text").map(ContentBlock::text);
    let data = long("data").map(|data| {
        let contents = ResourceContents::blob(data, "block:data");
        ContentBlock::resource(match block.text("mimeType") {
            Some(mime_type) => contents.with_mime_type(mime_type),
            None => contents,
        })
    });

    let note = format!(
        "(A content block of the type {}, which clients do not know: {})",
        larder_protocol::quote::quoted(&kind),
        block.into_value()
    );
    Ok([Some(ContentBlock::text(note)), text, data].into_iter().flatten().collect())
}

/// Whether a string may stand for one that is stored.
fn is_stored(text: &str) -> bool {
    text.starts_with("larder://")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown_all(content: Value) -> Result<Vec<ContentBlock>, Problem> {
        read_all(content, Excess::IsShown)
    }

    #[test]
    fn what_decorates_a_block_does_not_cost_it() {
        let blocks = shown_all(json!([
            { "type": "text", "text": "a", "annotations": { "priority": "high" }, "_meta": 5 },
            { "text": 7, "type": "text" },
            { "text": "untyped" },
            { "type": "resource_link", "uri": "file:///a/b.txt?x=1", "size": "large" },
        ]));
        let blocks = serde_json::to_value(blocks.expect("they are clear")).expect("they are JSON");

        assert_eq!(
            blocks,
            json!([
                { "type": "text", "text": "a" },
                { "type": "text", "text": "7" },
                { "type": "text", "text": "untyped" },
                { "type": "resource_link", "uri": "file:///a/b.txt?x=1", "name": "b.txt" },
            ])
        );
    }

    #[test]
    fn an_unknown_block_is_shown_and_its_long_text_stands_by_itself() {
        let long = "x".repeat(2_000);

        let blocks = shown_all(
            json!({ "type": "video", "text": long, "data": long, "mimeType": "video/mp4", "seconds": 3 }),
        );
        let blocks = serde_json::to_value(blocks.expect("it is shown")).expect("it is JSON");

        let note = blocks[0]["text"].as_str().expect("a text");
        assert!(note.contains("\"video\"") && note.contains("\"seconds\":3"), "{note}");
        assert_eq!(
            (&blocks[1]["text"], &blocks[2]["resource"]["blob"]),
            (&json!(long), &json!(long))
        );
    }

    #[test]
    fn only_a_result_without_any_block_is_an_error() {
        assert!(shown_all(json!([null, 5])).is_err());
        assert!(shown_all(json!(5)).is_err());

        let blocks = shown_all(json!([5, { "type": "text", "text": "a" }])).expect("one is clear");
        let note = blocks[0].as_text().map(|text| &*text.text);
        assert!(note.is_some_and(|note| note.contains("not 5")), "{note:?}");
        assert_eq!(shown_all(json!([])), Ok(Vec::new()));
    }

    #[test]
    fn texts_in_place_of_blocks_are_blocks() {
        let blocks = shown_all(json!(["a", "", { "type": "text", "text": "b" }]));
        let texts = blocks.expect("they are clear");
        let texts: Vec<_> = texts.iter().filter_map(|block| block.as_text()).collect();
        assert_eq!(texts.iter().map(|text| &*text.text).collect::<Vec<_>>(), ["a", "", "b"]);
    }

    #[test]
    fn members_that_are_too_long_are_told_behind_their_block() {
        let long = "x".repeat(100_000);
        let content = json!([
            { "type": "image", "data": "AAAA", "mimeType": long },
            { "type": "resource_link", "uri": long, "name": "a" },
            { "type": "resource_link", "uri": "a:b/c", "name": long },
            { "type": "resource", "resource": { "uri": long, "text": "t", "mimeType": long } },
        ]);

        let blocks = shown_all(content.clone()).expect("they are clear");
        let blocks = serde_json::to_value(blocks).expect("they are JSON");
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": UNKNOWN_MEDIA_TYPE });
        let link = json!({ "type": "resource_link", "uri": "a:b/c", "name": "c" });
        let resource = json!({ "uri": "block:resource", "text": "t" });
        let resource = json!({ "type": "resource", "resource": resource });
        assert_eq!([&blocks[0], &blocks[3], &blocks[5]], [&image, &link, &resource]);
        for (note, member) in [
            (1, "mimeType"),
            (2, "uri"),
            (4, "name"),
            (6, "resource.uri"),
            (6, "resource.mimeType"),
        ] {
            let text = blocks[note]["text"].as_str().expect("a text");
            assert!(text.contains(&format!("\"{member}\":\"xxx")), "{text:.200}");
        }

        let named = read_all(content, Excess::IsNamed).expect("they are clear");
        assert!(json!(named).to_string().len() < 2_000);
    }
}
