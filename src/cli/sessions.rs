//! `larder admin sessions`: the sessions of owners in Redis.

use larder_oauth::{Owner, audit};
use larder_protocol::quote::visible;
use larder_records::words::number;
use larder_store::session::{RedisSessions, SessionError};

use super::{
    client::{ClientError, print},
    confirm::confirm,
};

/// How many owners are listed at a time.
const PAGE: usize = 256;

pub(super) async fn list(sessions: &RedisSessions) -> Result<(), ClientError> {
    let mut after = None;
    loop {
        let page = sessions.owners(after.as_deref(), PAGE).await.map_err(|error| failed(&error))?;
        for (owner, count) in &page.owners {
            print(format!("{}\t{count}\n", visible(owner.as_str())).as_bytes())?;
        }

        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

pub(super) async fn count(sessions: &RedisSessions, owner: &Owner) -> Result<(), ClientError> {
    let count = sessions.count_of(owner).await.map_err(|error| failed(&error))?;
    let name = visible(owner.as_str());
    print(format!("{name}: {} sessions\n", number(count)).as_bytes())
}

pub(super) async fn end(
    sessions: &RedisSessions,
    owner: &Owner,
    yes: bool,
) -> Result<(), ClientError> {
    let name = visible(owner.as_str());

    if !yes {
        let count = sessions.count_of(owner).await.map_err(|error| failed(&error))?;
        let count = number(count);
        if !confirm(&format!("{name} has {count} sessions. End all of them?"))? {
            return Err(ClientError::Failed("No session was ended.".into()));
        }
    }

    let ended = sessions.end_all(owner).await;
    audit::sessions_ended(owner, &ended);
    let ended = ended.map_err(|error| failed(&error))?;
    print(format!("Ended {} sessions of {name}.\n", number(ended)).as_bytes())
}

fn failed(error: &SessionError) -> ClientError {
    ClientError::Failed(error.to_string())
}
