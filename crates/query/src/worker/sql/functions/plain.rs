//! SQLite's own functions, under whose names others are registered: a connection without these
//! computes them.

use std::{cell::RefCell, collections::HashMap};

use rusqlite::{
    Connection, Error, Result, Statement, functions::Context, params_from_iter, types::Value,
};

use super::value;

thread_local! {
    /// The statements that call functions, by name and number of arguments. They live as long as
    /// their thread, as their connection does.
    static CALLS: RefCell<HashMap<(&'static str, usize), Statement<'static>>> = RefCell::default();
    static CONNECTION: Option<&'static Connection> =
        Connection::open_in_memory().ok().map(|connection| &*Box::leak(Box::new(connection)));
}

/// The value of SQLite's function of this name for the arguments of a call.
pub(super) fn delegate(ctx: &Context<'_>, name: &'static str) -> Result<Value> {
    let arguments: Vec<Value> = (0..ctx.len()).map(|index| value(ctx, index)).collect();
    call(name, &arguments)
}

/// The value of SQLite's function of this name.
pub(super) fn call(name: &'static str, arguments: &[Value]) -> Result<Value> {
    CALLS.with_borrow_mut(|calls| {
        let key = (name, arguments.len());
        let statement = match calls.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let connection = CONNECTION.with(|connection| *connection);
                let connection = connection.ok_or(Error::InvalidQuery)?;
                let marks = vec!["?"; arguments.len()].join(", ");
                entry.insert(connection.prepare(&format!("SELECT {name}({marks})"))?)
            }
        };

        let called = statement.query_row(params_from_iter(arguments), |row| row.get(0));
        called.map_err(|error| match error {
            Error::SqliteFailure(_, Some(text)) => Error::UserFunctionError(text.into()),
            error => error,
        })
    })
}
