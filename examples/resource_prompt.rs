//! A prompt that contains a link to a resource instead of its text. The host
//! reads the resource.

use std::path::PathBuf;

use larder::{Context, FileResource, Prompt, Registry, user};
use rmcp::model::{ContentBlock, PromptMessage, Resource, Role};

const URI: &str = "file://knowledge.txt";

/// Answers a request from the knowledge base.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct KnowledgeBasePrompt {
    /// The user's question.
    user_request: String,
}

async fn knowledge_base_prompt(_: Context, args: KnowledgeBasePrompt) -> Vec<PromptMessage> {
    let link = Resource::new(URI, "knowledge_base");
    vec![
        user(args.user_request),
        user(format!(
            "This prompt includes a knowledge base from the resource URI {URI}. Please use this \
            resource to answer the user's request. The resource follows this message:"
        )),
        PromptMessage::new(Role::User, ContentBlock::resource_link(link)),
    ]
}

fn main() -> std::process::ExitCode {
    larder::cli::run(|_| {
        let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/data");
        let knowledge = FileResource::new(data.join("knowledge.txt")).at(URI);
        Registry::builder("basic-resource-server")
            .resource(
                knowledge
                    .name("knowledge_base")
                    .description("A resource that loads a text-based knowledge base."),
            )
            .prompt(Prompt::new(knowledge_base_prompt))
            .build()
    })
}
