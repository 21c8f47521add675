//! The members that the types of definitions, results and content blocks have (schemas of 2025-11-25 and
//! 2026-07-28). Other members pass as the upstream wrote them.

use larder_protocol::Shape;

pub(super) static TOOL: Shape = Shape {
    known: &["name", "title", "description", "inputSchema", "outputSchema", "execution", "_meta"],
    within: &[("annotations", &TOOL_ANNOTATIONS), ("icons", &ICON)],
    rounded: &[],
};

pub(super) static PROMPT: Shape = Shape {
    known: &["name", "title", "description", "_meta"],
    within: &[("arguments", &PROMPT_ARGUMENT), ("icons", &ICON)],
    rounded: &[],
};

pub(super) static RESOURCE: Shape = Shape {
    known: &["uri", "name", "title", "description", "mimeType", "size", "_meta"],
    within: &[("annotations", &ANNOTATIONS), ("icons", &ICON)],
    rounded: &[],
};

pub(super) static TEMPLATE: Shape = Shape {
    known: &["uriTemplate", "name", "title", "description", "mimeType", "_meta"],
    within: &[("annotations", &ANNOTATIONS), ("icons", &ICON)],
    rounded: &[],
};

/// The result of `tools/call`, beside the members of a result that is not complete.
pub(super) static CALL_RESULT: Shape = Shape {
    known: &[
        "content",
        "structuredContent",
        "isError",
        "task",
        "inputRequests",
        "requestState",
        "resultType",
        "_meta",
    ],
    within: &[],
    rounded: &[],
};

pub(super) static PROMPT_RESULT: Shape = Shape {
    known: &["description", "messages", "inputRequests", "requestState", "resultType", "_meta"],
    within: &[],
    rounded: &[],
};

pub(super) static PROMPT_MESSAGE: Shape =
    Shape { known: &["role", "content"], within: &[], rounded: &[] };

/// The result of `resources/read`. Larder sends its own hints for caches.
pub(super) static READ_RESULT: Shape = Shape {
    known: &[
        "contents",
        "ttlMs",
        "cacheScope",
        "inputRequests",
        "requestState",
        "resultType",
        "_meta",
    ],
    within: &[],
    rounded: &[],
};

pub(super) static COMPLETE_RESULT: Shape =
    Shape { known: &["resultType", "_meta"], within: &[("completion", &COMPLETION)], rounded: &[] };

static COMPLETION: Shape =
    Shape { known: &["values", "total", "hasMore"], within: &[], rounded: &[] };

pub(super) static TEXT: Shape = Shape {
    known: &["type", "text", "_meta"],
    within: &[("annotations", &ANNOTATIONS)],
    rounded: &[],
};

/// Images and sounds.
pub(super) static MEDIA: Shape = Shape {
    known: &["type", "data", "mimeType", "_meta"],
    within: &[("annotations", &ANNOTATIONS)],
    rounded: &[],
};

pub(super) static LINK: Shape = Shape {
    known: &["type", "uri", "name", "title", "description", "mimeType", "size", "_meta"],
    within: &[("annotations", &ANNOTATIONS), ("icons", &ICON)],
    rounded: &[],
};

pub(super) static EMBEDDED: Shape = Shape {
    known: &["type", "_meta"],
    within: &[("annotations", &ANNOTATIONS), ("resource", &CONTENTS)],
    rounded: &[],
};

/// The contents of a resource.
pub(super) static CONTENTS: Shape =
    Shape { known: &["uri", "mimeType", "text", "blob", "_meta"], within: &[], rounded: &[] };

static TOOL_ANNOTATIONS: Shape = Shape {
    known: &["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"],
    within: &[],
    rounded: &[],
};

static PROMPT_ARGUMENT: Shape =
    Shape { known: &["name", "title", "description", "required"], within: &[], rounded: &[] };

static ICON: Shape =
    Shape { known: &["src", "mimeType", "sizes", "theme"], within: &[], rounded: &[] };

static ANNOTATIONS: Shape =
    Shape { known: &["audience", "lastModified"], within: &[], rounded: &["priority"] };
