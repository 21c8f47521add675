//! Forwards the changes that all instances publish in Redis to the feed of this process.

use std::{sync::Arc, time::Duration};

use larder_identity::Owner;
use larder_runtime::clock::Timestamp;

use super::RedisState;
use crate::{
    redis::{ChannelEvent, Subscription, unescape},
    store::{Change, ChangeKind, ResourceUri},
};

/// The channel of all changes, in the order in which they are made.
pub(super) const CHANNEL: &str = "changes";

/// Forwards changes to the feed until dropped.
pub(super) async fn forward(mut changes: Subscription, inner: Arc<RedisState>) {
    loop {
        match changes.next().await {
            ChannelEvent::Message(message) => match parse(&message) {
                Some((change, state)) => publish(&inner, change, &state),
                None => tracing::warn!(?message, "ignored a message in Redis that is no change"),
            },
            ChannelEvent::Gap => {
                inner.schedule.wake_all();
                inner.feed.publish_missed();
            }
        }
    }
}

/// Publishes a change to the feed, after noting when the resource expires or expired.
fn publish(inner: &RedisState, change: Change, state: &ResourceState) {
    match *state {
        ResourceState::Lives(ttl) => {
            inner.expired.forget(&change.owner, &change.uri);
            let shard = inner.shard_of(&change.owner).number();
            inner.schedule.wake_after(shard, Some(ttl));
        }
        ResourceState::Expired(at) => {
            inner.expired.remember(change.owner.clone(), change.uri.clone(), at);
        }
        ResourceState::Deleted => {}
    }

    inner.feed.publish(change);
}

/// The state of a resource after a change.
#[derive(Debug, PartialEq, Eq)]
enum ResourceState {
    /// The resource expires this long after the change.
    Lives(Duration),
    /// The resource expired at this time.
    Expired(Timestamp),
    Deleted,
}

/// Parses a message as `index.lua` writes it: the kind of change, milliseconds (the
/// remaining life, or the time of the expiry), the time of the change, owner, URI.
fn parse(message: &[u8]) -> Option<(Change, ResourceState)> {
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
    let state = match kind {
        ChangeKind::Created | ChangeKind::Updated => {
            ResourceState::Lives(Duration::from_millis(millis))
        }
        ChangeKind::Expired => ResourceState::Expired(Timestamp::from_millis(millis)),
        ChangeKind::Deleted => ResourceState::Deleted,
    };
    Some((Change { owner, uri, kind, id }, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_parsed_and_anything_else_is_refused() {
        assert!(parse(b"created 1500 1.2 a%3Ab temp://a b").is_none(), "no URI has a space");

        let (change, state) = parse(b"updated 1500 1.2 a%3Ab temp://a").expect("it is one");
        let owner = Owner::new("a:b");
        let uri = ResourceUri::parse("temp://a").expect("it is a URI");
        let id = Some("1.2 updated temp://a".into());
        assert_eq!(change, Change { owner, uri, kind: ChangeKind::Updated, id });
        assert_eq!(state, ResourceState::Lives(Duration::from_millis(1500)));

        let state = parse(b"expired 1500 1.2 a temp://a").expect("it is one").1;
        assert_eq!(state, ResourceState::Expired(Timestamp::from_millis(1500)));

        let state = parse(b"deleted 0 1.2 a temp://a").expect("it is one").1;
        assert_eq!(state, ResourceState::Deleted);

        for other in
            ["", "created", "made 1 1.2 a temp://a", "created x 1.2 a temp://a", "deleted 0 1.2 a"]
        {
            assert!(parse(other.as_bytes()).is_none(), "{other:?}");
        }
    }
}
