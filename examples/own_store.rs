//! A store of one's own: resources in a file of SQLite, as values by key.

use std::process::ExitCode;

use async_trait::async_trait;
use bytes::Bytes;
use larder::{
    clock::Timestamp,
    store::{KeyValueError, KeyValueStore, ObjectBackend, ObjectLocation, OwnerQuota},
};
use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension, params};

/// A table of keys and values. One connection makes all changes, one after the other.
#[derive(Debug)]
pub(crate) struct Sqlite(Mutex<Connection>);

impl Sqlite {
    /// The values in a file, which is created if it is missing.
    pub(crate) fn open(file: &str) -> rusqlite::Result<Self> {
        let connection = Connection::open(file)?;
        let table = "pairs (key TEXT PRIMARY KEY, value BLOB, written INTEGER)";
        connection.execute(&format!("CREATE TABLE IF NOT EXISTS {table}"), [])?;
        Ok(Self(Mutex::new(connection)))
    }
}

#[async_trait]
impl KeyValueStore for Sqlite {
    async fn get(&self, key: &str) -> Result<Option<Bytes>, KeyValueError> {
        let sql = "SELECT value FROM pairs WHERE key = ?";
        let found = self.0.lock().query_row(sql, [key], |row| row.get::<_, Vec<u8>>(0));
        Ok(found.optional()?.map(Bytes::from))
    }

    async fn put(&self, key: &str, value: Bytes, only_new: bool) -> Result<bool, KeyValueError> {
        let or = if only_new { "IGNORE" } else { "REPLACE" };
        let sql = format!("INSERT OR {or} INTO pairs VALUES (?, ?, 1000 * unixepoch())");
        Ok(self.0.lock().execute(&sql, params![key, &*value])? == 1)
    }

    async fn delete(&self, key: &str) -> Result<(), KeyValueError> {
        self.0.lock().execute("DELETE FROM pairs WHERE key = ?", [key])?;
        Ok(())
    }

    async fn list(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Timestamp)>, KeyValueError> {
        // No character sorts after the last one, so that it ends the keys with the prefix.
        let sql = "SELECT key, written FROM pairs
                   WHERE key > max(?1, ?2) AND key < ?1 || char(0x10FFFF) ORDER BY key LIMIT ?3";
        let connection = self.0.lock();
        let mut statement = connection.prepare(sql)?;
        let rows = statement.query_map(params![prefix, after, i64::try_from(limit)?], |row| {
            Ok((row.get(0)?, Timestamp::from_millis(row.get::<_, i64>(1)?.unsigned_abs())))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn main() -> ExitCode {
    let file = std::env::var("NOTES_FILE").unwrap_or_else(|_| "notes.db".to_owned());
    let values = Sqlite::open(&file).expect("the file is a database");
    let location = ObjectLocation::of_values("sqlite", values);
    let backend = ObjectBackend::over(location, OwnerQuota::default());

    larder::server("notes").reading().writing().store(backend).run()
}
