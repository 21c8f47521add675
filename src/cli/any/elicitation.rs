//! Questions of a server, asked on the terminal (2025-11-25 and 2026-07-28, elicitation).

use std::io::{self, BufRead, Write};

use console::Style;
use larder_protocol::quote::visible;
use serde_json::{Map, Value, json};

use crate::cli::client::{open_browser, page};

/// Asks the person for this server. Returns the result for the server.
pub(super) fn ask(server: &str, params: &Value) -> Value {
    at_the_terminal(server).ask(params)
}

/// Asks the person, who has opened a page, whether all is done there.
pub(super) fn is_done(server: &str) -> bool {
    let mut asking = at_the_terminal(server);
    asking.agrees("Are you done there?", Enter::Declines).is_ok_and(|is_done| is_done)
}

fn at_the_terminal(server: &str) -> Asking<'_, impl Iterator<Item = String>, io::Stderr> {
    let lines = std::iter::from_fn(|| {
        let mut line = String::new();
        // The lock is free between lines, so that lines typed earlier can be forgotten.
        let read = io::stdin().read_line(&mut line).ok().filter(|bytes| *bytes > 0);
        read.map(|_| line)
    });
    Asking { server, lines, out: io::stderr(), forget: forget_typed }
}

/// Forgets the lines that were typed before a question was to be seen: none of them answers it.
fn forget_typed() {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let mut stdin = io::stdin().lock();
        loop {
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
            let is_polled = poll(&mut ready, Some(&now)).is_ok();
            if !is_polled || !ready[0].revents().contains(PollFlags::IN) {
                return;
            }

            let typed = stdin.fill_buf().map_or(0, <[u8]>::len);
            if typed == 0 {
                return;
            }
            stdin.consume(typed);
        }
    }
}

/// A conversation over lines.
struct Asking<'a, L, W> {
    /// The server that asks.
    server: &'a str,
    lines: L,
    out: W,
    /// Forgets the lines that were typed so far.
    forget: fn(),
}

/// The meaning of an empty answer to a question of yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Enter {
    Agrees,
    Declines,
}

/// The person has ended the input.
struct Ended;

impl<L: Iterator<Item = String>, W: Write> Asking<'_, L, W> {
    fn ask(mut self, params: &Value) -> Value {
        let message = params["message"].as_str().unwrap_or("The server asks something.");
        let bold = Style::new().bold().for_stderr();
        let message = bold.apply_to(visible(message)).to_string();
        self.say(&format!("{} asks:", self.server));
        self.write(&format!("{message}\n"));

        let asked = match params["url"].as_str() {
            Some(url) => self.visit(url),
            None => self.form(&params["requestedSchema"]),
        };
        asked.unwrap_or_else(|Ended| json!({ "action": "cancel" }))
    }

    /// Asks to visit a page.
    fn visit(&mut self, url: &str) -> Result<Value, Ended> {
        let Some(page) = page(url) else {
            self.say(&format!("It wants to open {url}, which is no web page: declined."));
            return Ok(json!({ "action": "decline" }));
        };

        // The host is on a line of its own: the rest of a URL can pass for another host.
        self.say(&format!("Host: {}", page.host_str().unwrap_or_default()));
        self.say(&format!("Page: {page}"));
        if !self.agrees("Open it?", Enter::Declines)? {
            return Ok(json!({ "action": "decline" }));
        }
        if !open_browser(&page) {
            self.say("No browser can be opened here: open the page yourself.");
        }
        Ok(json!({ "action": "accept" }))
    }

    /// Asks for each member of a form.
    fn form(&mut self, schema: &Value) -> Result<Value, Ended> {
        let mut content = Map::new();
        let required = |name: &str| {
            let mut names = schema["required"].as_array().into_iter().flatten();
            names.any(|required| required == name)
        };

        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = self.member(name, property, required(name))? {
                content.insert(name.clone(), value);
            }
        }

        // A form without members is nothing but a question.
        let enter = if content.is_empty() { Enter::Declines } else { Enter::Agrees };
        Ok(if self.agrees("Send it?", enter)? {
            json!({ "action": "accept", "content": content })
        } else {
            json!({ "action": "decline" })
        })
    }

    /// Asks for one member until the answer fits.
    fn member(
        &mut self,
        name: &str,
        property: &Value,
        is_required: bool,
    ) -> Result<Option<Value>, Ended> {
        let title = property["title"].as_str().unwrap_or(name);
        let described = property["description"].as_str();
        let described = described.map(|text| format!(" ({text})")).unwrap_or_default();
        let choices = choices(property);
        let listed = match choices.as_slice() {
            [] if property["type"] == "boolean" => " [y/n]".to_owned(),
            [] => String::new(),
            choices => format!(
                " [{}]",
                choices.iter().map(|(_, title)| title.as_str()).collect::<Vec<_>>().join(", ")
            ),
        };

        let default = property.get("default").filter(|default| !default.is_null());
        let default_shown = default.map(|default| match default {
            Value::String(text) => format!(" <{text}>"),
            other => format!(" <{other}>"),
        });
        let optional = if is_required || default.is_some() { "" } else { ", optional" };
        let prompt =
            format!("{title}{described}{listed}{}{optional}: ", default_shown.unwrap_or_default());

        loop {
            let answer = self.line(&prompt)?;
            let answer = answer.trim();
            if answer.is_empty() {
                match default {
                    Some(default) => return Ok(Some(default.clone())),
                    None if !is_required => return Ok(None),
                    None => self.say("An answer is required."),
                }
                continue;
            }

            match read(answer, property, &choices) {
                Ok(value) => return Ok(Some(value)),
                Err(problem) => self.say(&problem),
            }
        }
    }

    /// Asks a question of yes or no.
    fn agrees(&mut self, question: &str, enter: Enter) -> Result<bool, Ended> {
        let choice = if enter == Enter::Agrees { "[Y/n]" } else { "[y/N]" };
        loop {
            let answer = self.line(&format!("{question} {choice} "))?;
            match flag(answer.trim()) {
                Some(answer) => return Ok(answer),
                None if answer.trim().is_empty() => return Ok(enter == Enter::Agrees),
                None => self.say("Answer y or n."),
            }
        }
    }

    fn line(&mut self, prompt: &str) -> Result<String, Ended> {
        (self.forget)();
        self.write(&visible(prompt));
        self.lines.next().ok_or(Ended)
    }

    /// Writes a line, without the control characters of a server's text in it.
    fn say(&mut self, line: &str) {
        self.write(&format!("{}\n", visible(line)));
    }

    fn write(&mut self, text: &str) {
        // Without standard error, the person sees no question and answers none.
        let _ = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
    }
}

/// The values to choose from, with their titles.
fn choices(property: &Value) -> Vec<(String, String)> {
    let source = if property["type"] == "array" { &property["items"] } else { property };
    if let Some(values) = source["enum"].as_array() {
        let titles = source["enumNames"].as_array();
        let values = values.iter().filter_map(Value::as_str).enumerate();
        return values
            .map(|(index, value)| {
                let title = titles.and_then(|titles| titles.get(index)?.as_str());
                (value.to_owned(), title.unwrap_or(value).to_owned())
            })
            .collect();
    }

    let options = source["oneOf"].as_array().or_else(|| source["anyOf"].as_array());
    let options = options.into_iter().flatten().filter_map(|option| {
        let value = option["const"].as_str()?;
        Some((value.to_owned(), option["title"].as_str().unwrap_or(value).to_owned()))
    });
    options.collect()
}

fn flag(answer: &str) -> Option<bool> {
    match answer.to_lowercase().as_str() {
        "y" | "yes" | "true" => Some(true),
        "n" | "no" | "false" => Some(false),
        _ => None,
    }
}

/// Reads an answer as the type of its member.
fn read(answer: &str, property: &Value, choices: &[(String, String)]) -> Result<Value, String> {
    let chosen = |answer: &str| {
        let found = choices.iter().find(|(value, title)| value == answer || title == answer);
        found.map(|(value, _)| json!(value)).ok_or_else(|| {
            let titles: Vec<_> = choices.iter().map(|(_, title)| title.as_str()).collect();
            format!("Answer one of {}.", titles.join(", "))
        })
    };

    match property["type"].as_str() {
        Some("boolean") => flag(answer).map(Value::Bool).ok_or_else(|| "Answer y or n.".into()),
        Some("integer") => {
            let number = answer.parse::<i64>().map_err(|_| "Answer a whole number.".to_owned())?;
            within(json!(number), property)
        }
        Some("number") => {
            let number = answer.parse::<f64>().ok().filter(|number| number.is_finite());
            within(json!(number.ok_or("Answer a number.")?), property)
        }
        Some("array") => {
            let parts = answer.split(',').map(str::trim).filter(|part| !part.is_empty());
            let values =
                parts.map(|part| if choices.is_empty() { Ok(json!(part)) } else { chosen(part) });
            Ok(Value::Array(values.collect::<Result<_, _>>()?))
        }
        _ if !choices.is_empty() => chosen(answer),
        _ => {
            let length = answer.chars().count() as u64;
            match (property["minLength"].as_u64(), property["maxLength"].as_u64()) {
                (Some(least), _) if length < least => {
                    Err(format!("Answer at least {least} characters."))
                }
                (_, Some(most)) if length > most => {
                    Err(format!("Answer at most {most} characters."))
                }
                _ => Ok(json!(answer)),
            }
        }
    }
}

fn within(number: Value, property: &Value) -> Result<Value, String> {
    let value = number.as_f64().unwrap_or_default();
    match (&property["minimum"], &property["maximum"]) {
        (least, _) if least.as_f64().is_some_and(|least| value < least) => {
            Err(format!("Answer at least {least}."))
        }
        (_, most) if most.as_f64().is_some_and(|most| value > most) => {
            Err(format!("Answer at most {most}."))
        }
        _ => Ok(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(params: &Value, lines: &[&str]) -> (Value, String) {
        let mut out = Vec::new();
        let lines = lines.iter().map(|line| (*line).to_owned());
        let asking = Asking { server: "a server", lines, out: &mut out, forget: || () };
        let result = asking.ask(params);
        (result, String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn a_form_is_asked_until_its_answers_fit() {
        let params = json!({ "message": "Who?", "requestedSchema": { "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 2 },
                "age": { "type": "integer", "minimum": 0, "maximum": 150 },
                "colour": { "type": "string", "enum": ["r", "g"], "enumNames": ["red", "green"] },
                "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
                "sure": { "type": "boolean", "default": true },
                "note": { "type": "string" },
            },
            "required": ["name", "age", "colour"] } });

        let lines = [
            "", "x", "Ann", "old", "200", "33", "blue", "green", "a, c", "b,a", "", "", "maybe", "",
        ];
        let (result, shown) = asked(&params, &lines);
        let content =
            json!({ "name": "Ann", "age": 33, "colour": "g", "tags": ["b", "a"], "sure": true });
        assert_eq!(result, json!({ "action": "accept", "content": content }), "{shown}");
        for told in [
            "An answer is required.",
            "Answer at least 2 characters.",
            "Answer a whole number.",
            "Answer at most 150.",
            "Answer one of red, green.",
            "Answer one of a, b.",
            "sure [y/n] <true>: ",
            "note, optional: ",
            "Answer y or n.",
        ] {
            assert!(shown.contains(told), "{told}: {shown}");
        }
    }

    #[test]
    fn a_question_is_declined_or_ended() {
        let params =
            json!({ "message": "\u{1b}[2JSure?", "requestedSchema": { "properties": {} } });
        let (declined, shown) = asked(&params, &["n"]);
        assert_eq!(declined, json!({ "action": "decline" }));
        assert!(!shown.contains('\u{1b}'), "a terminal would obey it: {shown:?}");
        assert_eq!(asked(&params, &[]).0, json!({ "action": "cancel" }));

        let visit = json!({ "message": "Pay", "mode": "url", "url": "https://a.example/pay" });
        for answers in [&["no"][..], &[""], &["what", ""]] {
            let (declined, shown) = asked(&visit, answers);
            assert_eq!(declined, json!({ "action": "decline" }), "Enter is no consent: {shown}");
            assert!(shown.starts_with("a server asks:\nPay\nHost: a.example\n"), "{shown}");
            assert!(shown.contains("https://a.example/pay"), "{shown}");
        }
    }

    #[test]
    fn only_web_pages_are_offered() {
        for url in ["file:///bin/sh", "javascript:x", "vscode://x", "no url", "-h", "\u{1b}[2J"] {
            let visit = json!({ "message": "Pay", "mode": "url", "url": url });
            let (declined, shown) = asked(&visit, &["y"]);
            assert_eq!(declined, json!({ "action": "decline" }), "{url}");
            assert!(shown.contains("no web page") && !shown.contains('\u{1b}'), "{shown:?}");
        }
    }

    #[test]
    fn no_text_of_a_server_reaches_the_terminal_as_it_is() {
        let hostile = "\u{1b}]52;c;eA==\u{7}";
        for property in [
            json!({ "type": "string", "title": hostile, "description": hostile, "default": hostile }),
            json!({ "type": "string", "enum": ["a", hostile] }),
            json!({ "type": "string", "oneOf": [{ "const": "a", "title": hostile }] }),
            json!({ "type": "array", "items": { "enum": [hostile] } }),
        ] {
            let params = json!({ "message": hostile, "requestedSchema": {
                "properties": { hostile: property }, "required": [hostile] } });
            let (_, shown) = asked(&params, &["", "b", "n"]);
            assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
        }
    }
}
