//! The user's consent to tools that write, asked once and before the code runs: a client of the
//! modern era answers by a further request, which starts the call anew.

use std::collections::BTreeMap;

use rmcp::model::JsonObject;
use serde_json::json;

use super::{CodeWrites, NAME};
use crate::handler::{Context, Elicited, ToolError};

/// The most tools that the question names.
const NAMED_TOOLS: usize = 20;
/// The most lines of code that the question shows, and the longest one in bytes.
const SHOWN_LINES: usize = 10;
const SHOWN_LINE_BYTES: usize = 160;

/// Whether the code of a run may call tools that write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    /// The code names no such tool, so nobody was asked.
    NotAsked,
    /// Nobody can be asked.
    Unavailable,
}

impl Consent {
    /// Asks the user, if the code names tools that write. `tools` says of each whether it only
    /// reads.
    ///
    /// # Errors
    /// The user does not consent.
    pub(super) async fn ask(
        ctx: &Context<()>,
        rule: CodeWrites,
        tools: &BTreeMap<String, bool>,
        code: &str,
    ) -> Result<Self, ToolError> {
        if rule == CodeWrites::Allow {
            return Ok(Self::Given);
        }

        let writing = tools.iter().filter(|(_, only_reads)| !**only_reads).map(|(name, _)| name);
        let named: Vec<_> = writing.filter(|tool| is_named(tool, code)).collect();
        if named.is_empty() {
            return Ok(Self::NotAsked);
        }
        if !ctx.can_elicit() {
            return Ok(Self::Unavailable);
        }

        let question = question(&named, code);
        match ctx.elicit_form("writes", &question, form()).await {
            Ok(Elicited::Accepted(_)) => Ok(Self::Given),
            Ok(Elicited::Declined | Elicited::Cancelled) => Err(ToolError::permanent(
                "The user did not allow the code to call tools that write. Nothing was run.",
            )),
            // A tool that another tool calls cannot ask.
            Err(_) => Ok(Self::Unavailable),
        }
    }

    /// Why a tool that writes is not called. `None` if it may be called.
    pub(super) fn refusal(self, tool: &str) -> Option<String> {
        let reason = match self {
            Self::Given => return None,
            Self::NotAsked => {
                "the code does not have its name, so the user was not asked: write the name out"
            }
            Self::Unavailable => {
                "the user cannot be asked: call it without run_code, or let the operator set code.writes = \"allow\""
            }
        };
        Some(format!("{tool} was not called: it does not say that it only reads, and {reason}."))
    }
}

/// Whether the code has the name of a tool, with or without that of its server.
fn is_named(tool: &str, code: &str) -> bool {
    let own = tool.split_once("__").map_or(tool, |(_, own)| own);
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    code.match_indices(own).any(|(at, _)| {
        let before = code[..at].trim_end_matches("__").chars().next_back();
        let after = code[at + own.len()..].chars().next();
        let has_server = code[..at].ends_with("__");
        !after.is_some_and(is_word) && (has_server || !before.is_some_and(is_word))
    })
}

fn question(tools: &[&String], code: &str) -> String {
    let names: Vec<_> = tools.iter().take(NAMED_TOOLS).map(|name| name.as_str()).collect();
    let more = match tools.len().saturating_sub(NAMED_TOOLS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };

    let is_shown = |line: &&str| tools.iter().any(|tool| is_named(tool, line));
    let lines = code.lines().filter(is_shown).take(SHOWN_LINES).map(|line| {
        let line = line.trim();
        format!("\n  {}", &line[..line.floor_char_boundary(SHOWN_LINE_BYTES.min(line.len()))])
    });

    format!(
        "{NAME} runs code that may call tools which change things: {}{more}. Allow it for this run?{}",
        names.join(", "),
        lines.collect::<String>()
    )
}

/// A form without questions: accepting it is the consent.
fn form() -> JsonObject {
    let form = json!({ "type": "object", "properties": {} });
    form.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_by_its_own_name_as_a_word() {
        for (code, is_found) in [
            ("await crm.create_issue({})", true),
            ("await crm['create_issue']({})", true),
            ("await call(\"crm__create_issue\", {})", true),
            ("await create_issue({})", true),
            ("await recreate_issue({})", false),
            ("await crm.create_issues({})", false),
            ("await crm.list({})", false),
        ] {
            assert_eq!(is_named("crm__create_issue", code), is_found, "{code}");
        }
    }

    #[test]
    fn the_question_names_the_tools_and_shows_their_lines_bounded() {
        let tool = "crm__create".to_owned();
        let line = format!("await crm.create({{ text: \"{}\" }})\n", "ä".repeat(500));
        let question = question(&[&tool], &format!("const a = 1\n{}", line.repeat(100)));
        assert!(question.starts_with(
            "run_code runs code that may call tools which change things: crm__create. Allow it for this run?\n  await crm.create({ text: \"ä"
        ));
        assert_eq!(question.lines().count(), 1 + SHOWN_LINES);
        assert!(question.len() < 2_000, "{}", question.len());
    }
}
