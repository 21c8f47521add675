//! What other replicas, and this one, say that they changed.

use std::{sync::Arc, time::Duration};

use super::Inner;
use crate::{
    auth::Owner,
    clock::Timestamp,
    redis::{Heard, Listener, unescape},
    store::{Change, ChangeKind, ResourceUri},
};

/// Where all changes are published, in the order in which they are made.
pub(super) const CHANNEL: &str = "changes";

/// Carries what is published to this process's feed, until dropped.
pub(super) async fn hear(mut changes: Listener, inner: Arc<Inner>) {
    loop {
        match changes.next().await {
            Heard::Message(message) => match parse(&message) {
                Some((change, until)) => {
                    match until {
                        Until::Lives(life) => {
                            inner.expired.forget(&change.owner, &change.uri);
                            let shard = inner.shard_of(&change.owner).number();
                            inner.agenda.expect(shard, Some(life));
                        }
                        Until::Expired(at) => {
                            inner.expired.remember(change.owner.clone(), change.uri.clone(), at);
                        }
                        Until::Deleted => {}
                    }
                    inner.feed.publish(change);
                }
                None => tracing::warn!(?message, "Redis published something else than a change"),
            },
            Heard::Gap => {
                inner.agenda.look_everywhere();
                inner.feed.skip();
            }
        }
    }
}

/// What becomes of a resource that changed.
#[derive(Debug, PartialEq, Eq)]
enum Until {
    /// From the change on, so long.
    Lives(Duration),
    /// Its time was over then.
    Expired(Timestamp),
    Deleted,
}

/// As `index.lua` writes it: what happened, the milliseconds that the resource
/// lives from then on or those at which it expired, when, whose it is, and which.
fn parse(message: &[u8]) -> Option<(Change, Until)> {
    let message = std::str::from_utf8(message).ok()?;
    let mut words = message.splitn(5, ' ');
    let word = words.next()?;
    let kind = match word {
        "created" => ChangeKind::Created,
        "updated" => ChangeKind::Updated,
        "deleted" => ChangeKind::Deleted,
        "expired" => ChangeKind::Expired,
        _ => return None,
    };
    let millis = words.next()?.parse().ok()?;
    let at = words.next()?;
    let owner = Owner::new(unescape(words.next()?)?);
    let uri = ResourceUri::parse(words.next()?).ok()?;
    let id = Some(format!("{at} {word} {uri}").into());
    let until = match kind {
        ChangeKind::Created | ChangeKind::Updated => Until::Lives(Duration::from_millis(millis)),
        ChangeKind::Expired => Until::Expired(Timestamp::from_millis(millis)),
        ChangeKind::Deleted => Until::Deleted,
    };
    Some((Change { owner, uri, kind, id }, until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_and_anything_else_is_not() {
        assert!(parse(b"created 1500 1.2 a%3Ab temp://a b").is_none(), "a space is in no URI");
        let (change, until) = parse(b"updated 1500 1.2 a%3Ab temp://a").expect("it is one");
        let owner = Owner::new("a:b");
        let uri = ResourceUri::parse("temp://a").expect("it is a URI");
        let id = Some("1.2 updated temp://a".into());
        assert_eq!(change, Change { owner, uri, kind: ChangeKind::Updated, id });
        assert_eq!(until, Until::Lives(Duration::from_millis(1500)));
        let until = parse(b"expired 1500 1.2 a temp://a").expect("it is one").1;
        assert_eq!(until, Until::Expired(Timestamp::from_millis(1500)));
        let until = parse(b"deleted 0 1.2 a temp://a").expect("it is one").1;
        assert_eq!(until, Until::Deleted);
        for other in
            ["", "created", "made 1 1.2 a temp://a", "created x 1.2 a temp://a", "deleted 0 1.2 a"]
        {
            assert!(parse(other.as_bytes()).is_none(), "{other:?}");
        }
    }
}
