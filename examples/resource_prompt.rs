//! A prompt that contains a link to a resource instead of its text. The host
//! reads the resource.

use std::path::PathBuf;

use larder::prelude::*;
use model::{ContentBlock, Role};

const URI: &str = "file://knowledge.txt";

/// Answers a request from the knowledge base.
#[prompt]
fn knowledge_base_prompt(
    /** The user's question. */
    user_request: String,
) -> [Message; 3] {
    let link = ContentBlock::resource_link(model::Resource::new(URI, "knowledge_base"));
    [
        user(user_request),
        user(format!(
            "This prompt includes a knowledge base from the resource URI {URI}. Please use this \
            resource to answer the user's request. The resource follows this message:"
        )),
        Message::new(Role::User, link),
    ]
}

fn main() -> ExitCode {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data");
    let knowledge = FileResource::new(data.join("knowledge.txt")).at(URI).name("knowledge_base");
    larder::server("basic-resource-server")
        .resource(knowledge.description("A resource that loads a text-based knowledge base."))
        .prompt(knowledge_base_prompt)
        .run()
}
