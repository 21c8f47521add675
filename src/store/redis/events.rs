//! What other replicas, and this one, say that they changed.

use std::{sync::Arc, time::Duration};

use super::Inner;
use crate::{
    auth::Owner,
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
                Some((change, life)) => {
                    inner.agenda.expect(inner.shard_of(&change.owner).number(), life);
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

/// As `index.lua` writes it: what happened, the milliseconds that the resource
/// lives from then on, when, whose it is, and which.
fn parse(message: &[u8]) -> Option<(Change, Option<Duration>)> {
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
    let life = words.next()?.parse().ok().map(Duration::from_millis)?;
    let at = words.next()?;
    let owner = Owner::new(unescape(words.next()?)?);
    let uri = ResourceUri::parse(words.next()?).ok()?;
    let id = Some(format!("{at} {word} {uri}").into());
    let lives = matches!(kind, ChangeKind::Created | ChangeKind::Updated);
    Some((Change { owner, uri, kind, id }, lives.then_some(life)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_and_anything_else_is_not() {
        let (change, life) = parse(b"created 1500 1.2 a%3Ab temp://a b").unzip();
        assert!(change.is_none() && life.is_none(), "a space is in no URI");
        let (change, life) = parse(b"updated 1500 1.2 a%3Ab temp://a").expect("it is one");
        let owner = Owner::new("a:b");
        let uri = ResourceUri::parse("temp://a").expect("it is a URI");
        let id = Some("1.2 updated temp://a".into());
        assert_eq!(change, Change { owner, uri, kind: ChangeKind::Updated, id });
        assert_eq!(life, Some(Duration::from_millis(1500)));
        assert_eq!(parse(b"expired 0 1.2 a temp://a").expect("it is one").1, None);
        for other in
            ["", "created", "made 1 1.2 a temp://a", "created x 1.2 a temp://a", "deleted 0 1.2 a"]
        {
            assert!(parse(other.as_bytes()).is_none(), "{other:?}");
        }
    }
}
