//! [`Outbox`]: what a script wants to send, and how it has ended.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    io,
    rc::Rc,
};

use larder_records::words::number;
use rquickjs::{Ctx, Exception, FromJs, Value};
use serde_json::json;

use super::super::channel::Channel;
use crate::script::{MAX_CALL_BYTES, ScriptFailure, ScriptStart};

/// The most console lines that are sent.
const MAX_LINES: u64 = 5_000;
/// The mark after output that is cut.
const CUT: &str = "… (console output is cut)";

/// The messages of a script that are not sent yet. Calls wait until few enough are open.
#[derive(Clone)]
pub(super) struct Outbox(Rc<State>);

struct State {
    calls: RefCell<VecDeque<String>>,
    lines: RefCell<VecDeque<String>>,
    next_id: Cell<u64>,
    open: Cell<usize>,
    calls_at_once: usize,
    console_left: Cell<usize>,
    lines_left: Cell<u64>,
    result_bytes: usize,
    end: RefCell<Option<Result<String, ScriptFailure>>>,
}

impl Outbox {
    pub(super) fn new(start: &ScriptStart) -> Self {
        Self(Rc::new(State {
            calls: RefCell::default(),
            lines: RefCell::default(),
            next_id: Cell::new(1),
            open: Cell::new(0),
            calls_at_once: start.calls_at_once,
            console_left: Cell::new(start.console_bytes),
            lines_left: Cell::new(MAX_LINES),
            result_bytes: start.result_bytes,
            end: RefCell::new(None),
        }))
    }

    /// Queues a call; its number. `message` is `["handle", operation]` or `["call", tool,
    /// arguments, handles]`, with JSON as text.
    pub(super) fn request(&self, message: &[Value<'_>]) -> rquickjs::Result<u64> {
        let id = self.0.next_id.get();
        let text = match message {
            [_, operation] => {
                let operation = text_of(operation)?;
                format!(r#"{{"handle":{{"id":{id},"operation":{operation}}}}}"#)
            }
            [_, tool, arguments, handles] => {
                let tool = json!(text_of(tool)?);
                let arguments = text_of(arguments)?;
                let handles = handles.as_int().unwrap_or_default();
                format!(
                    r#"{{"call":{{"id":{id},"tool":{tool},"arguments":{arguments},"handles":{handles}}}}}"#
                )
            }
            _ => return Err(rquickjs::Error::Unknown),
        };

        if text.len() > MAX_CALL_BYTES
            && let Some(value) = message.first()
        {
            let problem = format!(
                "the arguments of a call have more than {} bytes: store them, and give the handle",
                number(MAX_CALL_BYTES as u64)
            );
            return Err(Exception::throw_range(value.ctx(), &problem));
        }
        self.0.next_id.set(id + 1);
        self.0.calls.borrow_mut().push_back(text);
        Ok(id)
    }

    /// Queues a console line, if it is to be kept.
    pub(super) fn log(&self, text: String) {
        let left = self.0.console_left.get();
        if left == 0 {
            return;
        }

        let lines = self.0.lines_left.get().saturating_sub(1);
        let is_kept = text.len() < left && lines > 0;
        self.0.lines_left.set(lines);
        self.0.console_left.set(if is_kept { left - text.len() - 1 } else { 0 });

        let kept = if is_kept { text } else { cut(&text, left) };
        self.0.lines.borrow_mut().push_back(kept);
    }

    /// Notes the returned value.
    pub(super) fn end(&self, value: String) {
        let is_over = value.len() > self.0.result_bytes;
        let end = if is_over { Err(ScriptFailure::Result) } else { Ok(value) };
        self.0.end.borrow_mut().get_or_insert(end);
    }

    /// Notes the error by which the script has ended. Calls that wait are not made.
    pub(super) fn fail(&self, failure: ScriptFailure) {
        self.0.calls.borrow_mut().clear();
        self.0.end.borrow_mut().get_or_insert(Err(failure));
    }

    /// How the script has ended.
    pub(super) fn take_end(&self) -> Option<Result<String, ScriptFailure>> {
        self.0.end.borrow_mut().take()
    }

    /// Whether no call waits or is open.
    pub(super) fn is_idle(&self) -> bool {
        self.0.open.get() == 0 && self.0.calls.borrow().is_empty()
    }

    /// Notes that a call has its answer.
    pub(super) fn answered(&self) {
        self.0.open.set(self.0.open.get().saturating_sub(1));
    }

    /// Sends the console lines, and the calls that may be open.
    pub(super) fn send(&self, channel: &mut Channel) -> io::Result<()> {
        self.send_lines(channel)?;
        while self.0.open.get() < self.0.calls_at_once {
            let Some(call) = self.0.calls.borrow_mut().pop_front() else { break };
            self.0.open.set(self.0.open.get() + 1);
            channel.script_message(call.as_bytes())?;
        }
        Ok(())
    }

    /// Sends the console lines.
    pub(super) fn send_lines(&self, channel: &mut Channel) -> io::Result<()> {
        while let Some(line) = self.0.lines.borrow_mut().pop_front() {
            channel.script_message(json!({ "log": { "text": line } }).to_string().as_bytes())?;
        }
        Ok(())
    }
}

/// The beginning of a text, and a note that it is cut.
fn cut(text: &str, max: usize) -> String {
    let end = text.floor_char_boundary(max.min(text.len()));
    format!("{}{CUT}", &text[..end])
}

fn text_of<'js>(value: &Value<'js>) -> rquickjs::Result<String> {
    let ctx: &Ctx<'js> = value.ctx();
    String::from_js(ctx, value.clone())
}
