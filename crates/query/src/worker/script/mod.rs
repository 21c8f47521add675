//! The worker of a script: QuickJS, whose functions send messages and get answers.

mod outbox;

use std::{cell::Cell, io, rc::Rc, time::Duration};

use larder_runtime::clock::{Clock, SystemClock, Timestamp};
use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Error, Function, Object, Runtime,
    context::EvalOptions,
};

use self::outbox::Outbox;
use super::channel::Channel;
use crate::script::{ScriptFailure, ScriptStart};

/// The name of the code in stack traces.
const CODE: &str = "code.js";
/// The lines that precede the code in the function around it.
const LINES_BEFORE: u32 = 1;
/// The functions of a script.
const PRELUDE: &str = include_str!("prelude.js");

/// The memory of a script and its stack, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) memory_bytes: u64,
    pub(super) stack_bytes: u64,
}

/// Runs a script, and sends its end.
///
/// # Errors
/// The server cannot be reached.
pub(super) fn run(channel: &mut Channel, start: &ScriptStart, room: Room) -> io::Result<()> {
    let ends = SystemClock.now().saturating_add(Duration::from_secs(start.seconds));
    let outbox = Outbox::new(start);

    let failure = match Machine::new(ends, room) {
        Ok(machine) => {
            let run = machine.context.with(|ctx| machine.run(&ctx, channel, start, &outbox));
            let is_full = machine.is_full();
            // Freeing a machine whose memory is used up can fail, and the process ends anyway.
            std::mem::forget(machine);
            match run {
                Ok(()) => return Ok(()),
                // Without memory, QuickJS cannot even reject the promise of the code.
                Err(Ended::Failed(ScriptFailure::Stuck)) if is_full => ScriptFailure::Memory,
                Err(Ended::Failed(failure)) => failure,
                Err(Ended::Unreachable(error)) => return Err(error),
            }
        }
        Err(_) => ScriptFailure::Memory,
    };

    outbox.send_lines(channel)?;
    channel.script_failed(&failure)
}

/// QuickJS with its limits.
struct Machine {
    context: Context,
    ends: Timestamp,
    /// Whether the code was interrupted.
    is_late: Rc<Cell<bool>>,
}

/// Why a script has ended without a value.
enum Ended {
    Failed(ScriptFailure),
    Unreachable(io::Error),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Unreachable(error)
    }
}

impl Machine {
    fn new(ends: Timestamp, room: Room) -> rquickjs::Result<Self> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let runtime = Runtime::new()?;
        // Messages and the program take the rest.
        runtime.set_memory_limit(size(room.memory_bytes / 4 * 3));
        runtime.set_max_stack_size(size(room.stack_bytes / 2));

        let is_late = Rc::new(Cell::new(false));
        let late = Rc::clone(&is_late);
        runtime.set_interrupt_handler(Some(Box::new(move || {
            late.set(late.get() || SystemClock.now() >= ends);
            late.get()
        })));

        let context = Context::full(&runtime)?;
        Ok(Self { context, ends, is_late })
    }

    /// Whether nearly all of the memory is used.
    fn is_full(&self) -> bool {
        let usage = self.context.runtime().memory_usage();
        usage.malloc_size >= usage.malloc_limit / 8 * 7
    }

    /// Runs the code until it has ended and all its calls are answered.
    fn run(
        &self,
        ctx: &Ctx<'_>,
        channel: &mut Channel,
        start: &ScriptStart,
        outbox: &Outbox,
    ) -> Result<(), Ended> {
        let caught = |error| Ended::Failed(self.failure(error));
        let functions = functions(ctx, start, outbox).catch(ctx).map_err(caught)?;
        let answer: Function<'_> = functions.get("answer").catch(ctx).map_err(caught)?;
        let run: Function<'_> = functions.get("run").catch(ctx).map_err(caught)?;

        let code = compiled(ctx, &start.code).catch(ctx).map_err(caught)?;
        run.call::<_, ()>((code,)).catch(ctx).map_err(caught)?;

        loop {
            self.run_jobs(ctx, channel, outbox)?;
            if outbox.is_idle() {
                let end = outbox.take_end().unwrap_or(Err(ScriptFailure::Stuck));
                let value = end.map_err(|failure| Ended::Failed(self.explained(failure)))?;
                outbox.send_lines(channel)?;
                return Ok(channel.script_done(&value)?);
            }

            let Some(reply) = channel.script_reply()? else {
                return Err(Ended::Failed(ScriptFailure::Stuck));
            };
            outbox.answered();
            answer.call::<_, ()>((reply,)).catch(ctx).map_err(caught)?;
        }
    }

    /// Runs what can be run before the next answer.
    fn run_jobs(&self, ctx: &Ctx<'_>, channel: &mut Channel, outbox: &Outbox) -> Result<(), Ended> {
        loop {
            outbox.send(channel)?;
            // A chain of short jobs is never interrupted.
            if self.is_late.get() || SystemClock.now() >= self.ends {
                return Err(Ended::Failed(ScriptFailure::Time));
            }
            if !ctx.execute_pending_job() {
                return Ok(());
            }
        }
    }

    /// The failure that an error of QuickJS tells.
    fn failure(&self, error: CaughtError<'_>) -> ScriptFailure {
        let thrown = match error {
            CaughtError::Exception(exception) => {
                let object = exception.as_object();
                let name: String = object.get("name").unwrap_or_default();
                let message = exception.message().unwrap_or_default();
                let stack = exception.stack().unwrap_or_default();
                thrown(format!("{name}: {message}"), &stack)
            }
            // Without memory for an error, QuickJS throws null.
            CaughtError::Value(_) | CaughtError::Error(Error::Allocation) => ScriptFailure::Memory,
            CaughtError::Error(error) => thrown(error.to_string(), ""),
        };
        self.explained(thrown)
    }

    /// The limit that is the reason for an error.
    fn explained(&self, failure: ScriptFailure) -> ScriptFailure {
        match &failure {
            _ if self.is_late.get() => ScriptFailure::Time,
            ScriptFailure::Thrown { message, .. } if is_out_of_memory(message) => {
                ScriptFailure::Memory
            }
            _ => failure,
        }
    }
}

fn is_out_of_memory(message: &str) -> bool {
    message.starts_with("InternalError: out of memory") || message == "Thrown: null"
}

/// The functions that the prelude makes for this script.
fn functions<'js>(
    ctx: &Ctx<'js>,
    start: &ScriptStart,
    outbox: &Outbox,
) -> rquickjs::Result<Object<'js>> {
    let host = Object::new(ctx.clone())?;
    let own = outbox.clone();
    let send = move |message: Vec<rquickjs::Value<'js>>| own.request(&message);
    host.set("send", Function::new(ctx.clone(), send)?)?;

    let own = outbox.clone();
    host.set("log", Function::new(ctx.clone(), move |text: String| own.log(text))?)?;

    let own = outbox.clone();
    host.set("done", Function::new(ctx.clone(), move |value: String| own.end(value))?)?;

    let own = outbox.clone();
    let failed = move |message: String, stack: String| own.fail(thrown(message, &stack));
    host.set("failed", Function::new(ctx.clone(), failed)?)?;

    let facts = serde_json::json!({ "tools": start.tools, "inputs": start.inputs });
    let facts = ctx.json_parse(facts.to_string())?;
    let prelude: Function<'js> = ctx.eval_with_options(PRELUDE, options("larder.js"))?;
    prelude.call((host, facts))
}

/// The code as an asynchronous function.
fn compiled<'js>(ctx: &Ctx<'js>, code: &str) -> rquickjs::Result<Function<'js>> {
    let function = format!("(async (inputs) => {{\n{code}\n}})");
    ctx.eval_with_options(function, options(CODE))
}

fn options(name: &str) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.filename = Some(name.to_owned());
    options
}

/// An error of the code, with its place there.
fn thrown(message: String, stack: &str) -> ScriptFailure {
    ScriptFailure::Thrown { message, at: place(stack) }
}

/// The first place in the code that a stack trace names.
fn place(stack: &str) -> Option<(u32, u32)> {
    let (_, after) = stack.split_once(&format!("{CODE}:"))?;
    let end = after.find(|c: char| c != ':' && !c.is_ascii_digit()).unwrap_or(after.len());
    let (line, column) = after[..end].split_once(':')?;
    let line = line.parse::<u32>().ok()?.checked_sub(LINES_BEFORE).filter(|line| *line > 0)?;
    Some((line, column.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_an_error_is_the_first_one_in_the_code() {
        for (stack, at) in [
            ("    at f (code.js:3:7)\n    at code.js:9:1\n", Some((2, 7))),
            ("    at call (larder.js:60:5)\n    at code.js:12:20", Some((11, 20))),
            ("    at call (larder.js:60:5)\n", None),
            ("    at code.js:1:1", None),
            ("", None),
        ] {
            assert_eq!(place(stack), at, "{stack}");
        }
    }
}
