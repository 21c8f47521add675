use async_trait::async_trait;
use larder_runtime::clock::ManualClock;

use super::*;
use crate::testing::session::Harness;

#[derive(Default)]
struct Memory(ManualClock);

#[async_trait]
impl Harness for Memory {
    async fn processes(&self, limits: SessionLimits) -> [Arc<dyn Sessions>; 2] {
        let clock = Arc::new(self.0.clone());
        let sessions = Arc::new(MemorySessions::new(clock, Random::counting(), limits));
        let maintained = Arc::clone(&sessions);
        tokio::spawn(async move { maintained.maintain().await });
        [sessions.clone(), sessions]
    }

    async fn pass(&self, span: Duration) {
        self.0.advance(span);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
}

crate::session_contract!(Memory::default());

#[tokio::test]
async fn a_deleted_session_leaves_nothing_behind() {
    let clock = Arc::new(ManualClock::new());
    let sessions = MemorySessions::new(clock, Random::counting(), SessionLimits::default());
    let version = ProtocolVersion::LATEST_LEGACY;

    let begun = sessions.create(Principal::Local, version, ClientFacts::default()).await;
    let session = begun.expect("a session begins");
    assert!(sessions.delete(&session.id, &Principal::Local).await.expect("it is deleted"));

    assert!(sessions.inner.table.lock().next_check().is_none());
}

#[tokio::test]
async fn an_expired_session_leaves_nothing_behind() {
    let clock = ManualClock::new();
    let limits = SessionLimits::default();
    let sessions = MemorySessions::new(Arc::new(clock.clone()), Random::counting(), limits);
    let version = ProtocolVersion::LATEST_LEGACY;

    let begun = sessions.create(Principal::Local, version, ClientFacts::default()).await;
    let session = begun.expect("a session begins");
    drop(sessions.open(&session, &RequestId::Number(1)).await.expect("a stream opens"));
    drop(sessions.standalone(&session).await.expect("it has a stream of its own"));

    clock.advance(Duration::from_secs(3 * 60 * 60));
    let mut table = sessions.inner.table.lock();
    table.remove_expired(clock.now(), Duration::from_secs(60 * 60));
    assert!(table.next_check().is_none());
}
