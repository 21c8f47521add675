//! The worker process: `larder query-worker`. It answers questions on its
//! standard input until that ends, or runs one script.

mod abandoned;
mod channel;
mod confine;
mod convert;
mod deadline;
mod decode;
mod formats;
mod jq;
mod output;
mod profile;
mod rounded;
mod script;
mod sql;

use std::{io::Write, process::ExitCode};

use self::{
    channel::{Asked, Channel},
    confine::Confined,
    deadline::Deadline,
    script::Room,
    sql::Database,
};
use super::{Engine, QueryError, Question, ReadCounts};
use larder_records::notes::Notes;

pub use super::wire::COMMAND;

/// Checks that a jq filter of the operator compiles. Filters of callers are checked in a process of
/// their own.
///
/// # Errors
/// [`QueryError`]: why it does not.
pub fn check_jq(filter: &str) -> Result<(), QueryError> {
    jq::check(filter)
}

/// The largest stack of the thread that runs queries: nested content and filters need it.
const MAX_STACK_BYTES: u64 = 64 << 20;
/// The share of the memory that the stack may take.
const STACK_SHARE: u64 = 8;

/// The worker's main. `memory_bytes` is what the process may use.
pub fn main(memory_bytes: u64) -> ExitCode {
    if let Err(error) = abandoned::end_when_abandoned() {
        let _ = writeln!(std::io::stderr(), "{error}");
        return ExitCode::FAILURE;
    }

    let stack_bytes = (memory_bytes / STACK_SHARE).min(MAX_STACK_BYTES);
    let stack_size = usize::try_from(stack_bytes).unwrap_or(usize::MAX);

    let worker = std::thread::Builder::new().stack_size(stack_size).spawn(move || {
        let confined = confine::enter(memory_bytes, stack_bytes)?;
        serve(&confined, stack_bytes)
    });

    let problem = match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(Ok(()))) => return ExitCode::SUCCESS,
        Ok(Ok(Err(error))) | Err(error) => error.to_string(),
        // A panic has been printed.
        Ok(Err(_)) => return ExitCode::FAILURE,
    };

    // The server logs standard error, unless it has ended.
    let _ = writeln!(std::io::stderr(), "{problem}");
    ExitCode::FAILURE
}

/// Answers questions until there are no more, or the rest of a content is not wanted; or runs one
/// script.
fn serve(confined: &Confined, stack_bytes: u64) -> std::io::Result<()> {
    let mut channel = Channel::new();
    channel.ready(confined.barriers)?;
    let mut database = None;
    let mut cpu = 0;

    while let Some(asked) = channel.next()? {
        let mut question = match asked {
            Asked::Question(question) => question,
            Asked::Script(start) => {
                confine::limit_cpu(start.seconds + 2);
                let room = Room { memory_bytes: confined.free_bytes, stack_bytes };
                return script::run(&mut channel, &start, room);
            }
        };

        // Limits are on the whole process, which may have answered before.
        cpu += question.seconds + 2;
        confine::limit_cpu(cpu);

        let free_bytes = confined.free_bytes;
        let mut answer = answer(&mut database, &mut question, &mut channel, free_bytes);
        if let Err(error) = &answer
            && channel.can_repeat()
            && convert::repair_refused(&mut question, error, &channel)
        {
            channel.drain()?;
            database = None;
            answer = self::answer(&mut database, &mut question, &mut channel, free_bytes);
        }

        match answer {
            Ok(mut answer) => {
                answer.notes.extend(channel.notes());
                channel.answer(&answer)?;
            }
            Err(error) => {
                channel.fail(&error)?;
                if !channel.is_idle() {
                    // The rest of the content would have to be read and dropped.
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Answers a question, after changing the contents that need it.
fn answer(
    database: &mut Option<Database>,
    question: &mut Question,
    channel: &mut Channel,
    free_bytes: u64,
) -> Result<super::Answer, QueryError> {
    if question.tables.is_empty() {
        return check(question);
    }

    convert::prepare(question, channel)?;
    match question.engine {
        Engine::Sql => answer_sql(database, question, channel, free_bytes),
        Engine::Jq { slurp } => jq::answer(question, slurp, channel),
    }
}

/// Checks a query that reads nothing yet.
fn check(question: &Question) -> Result<super::Answer, QueryError> {
    match question.engine {
        Engine::Sql => sql::check_statement(question)?,
        Engine::Jq { .. } => jq::check(&question.text)?,
    }

    Ok(super::Answer {
        columns: Vec::new(),
        rows: Vec::new(),
        text: String::new(),
        total: 0,
        cut: false,
        read: ReadCounts::default(),
        places: Vec::new(),
        notes: Notes::default(),
    })
}

/// Answers a question in SQL. A worker gets questions over the same tables only, so these stay
/// loaded.
fn answer_sql(
    database: &mut Option<Database>,
    question: &Question,
    channel: &mut Channel,
    free_bytes: u64,
) -> Result<super::Answer, QueryError> {
    let deadline = Deadline::new(question);
    let mut open = match database.take() {
        Some(open) => open,
        None => Database::open(question, channel, &deadline, free_bytes)?,
    };

    let answer = open.answer(question, channel, &deadline);
    *database = Some(open);
    answer
}
