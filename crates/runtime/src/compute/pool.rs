//! [`Pool`]: the threads that run the work.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use super::{
    Busy, ComputeLimits,
    queue::{FairQueue, QueueLimits, QueueTicket},
};

/// Threads that run queued work. They start when they are needed.
pub(super) struct Pool(Arc<PoolShared>);

struct PoolShared {
    state: Mutex<PoolState>,
    work: Condvar,
}

struct PoolState {
    limits: ComputeLimits,
    queue: FairQueue<Job>,
    threads: usize,
    /// Threads that wait for work.
    idle: usize,
}

type Job = Box<dyn FnOnce() + Send>;

/// Tells running work that nobody waits for its result.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether the work should return soon, with any result.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Pool {
    pub(super) fn new(limits: ComputeLimits) -> Self {
        let queue = FairQueue::new(queue_limits(&limits));
        let state = PoolState { limits, queue, threads: 0, idle: 0 };
        Self(Arc::new(PoolShared { state: Mutex::new(state), work: Condvar::new() }))
    }

    pub(super) fn limits(&self) -> ComputeLimits {
        self.0.state.lock().limits.clone()
    }

    /// Sets the limits. A surplus thread ends when it finishes its job, or when the next job
    /// wakes it.
    pub(super) fn set_limits(&self, limits: ComputeLimits) {
        let mut state = self.0.state.lock();
        state.queue.set_limits(queue_limits(&limits));
        state.limits = limits;
    }

    pub(super) fn submit<T: Send + 'static>(
        &self,
        owner: &str,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<Running<T>, Busy> {
        let (sender, result) = oneshot::channel();
        let stop = Stop::default();
        let job = {
            let stop = stop.clone();
            move || {
                let outcome = panic::catch_unwind(AssertUnwindSafe(|| work(&stop)));
                // Fails if the caller has stopped waiting.
                let _ = sender.send(outcome);
            }
        };
        let ticket = self.queue(owner, Box::new(job))?;
        Ok(Running { result, stop, ticket, shared: Arc::clone(&self.0) })
    }

    fn queue(&self, owner: &str, job: Job) -> Result<QueueTicket, Busy> {
        let mut state = self.0.state.lock();
        let ticket = state.queue.push(owner, job)?;
        if !state.queue.has_turns() {
            // The owner has its share of the threads; the next that is done takes the job.
            return Ok(ticket);
        }
        if state.idle > 0 {
            state.idle -= 1;
            self.0.work.notify_one();
        } else if state.threads < state.limits.threads() {
            state.threads += 1;
            let shared = Arc::clone(&self.0);
            let spawned =
                thread::Builder::new().name("compute".into()).spawn(move || shared.run_jobs());
            if let Err(error) = spawned {
                state.threads -= 1;
                tracing::error!(%error, "a thread for CPU work cannot be started");
                if state.threads == 0 {
                    state.queue.cancel(&ticket);
                    return Err(Busy::All { limit: 0, setting: "compute.threads" });
                }
            }
        }
        Ok(ticket)
    }
}

/// The limits of the queue. One owner leaves a thread to the others.
fn queue_limits(limits: &ComputeLimits) -> QueueLimits {
    QueueLimits {
        running_per_owner: limits.threads().saturating_sub(1).max(1),
        waiting_per_owner: limits.queued_per_owner,
        waiting: limits.queued,
    }
}

impl PoolShared {
    fn run_jobs(&self) {
        let mut state = self.state.lock();
        while state.threads <= state.limits.threads() {
            let Some((ticket, job)) = state.queue.pop() else {
                state.idle += 1;
                self.work.wait(&mut state);
                continue;
            };
            MutexGuard::unlocked(&mut state, job);
            state.queue.finished(&ticket.owner);
        }
        state.threads -= 1;
        // A surplus thread that a job has woken leaves it to another idle thread.
        if state.idle > 0 {
            state.idle -= 1;
            self.work.notify_one();
        }
    }
}

/// Work that waits or runs. Dropping it removes the work from the queue, or tells it
/// to stop.
pub struct Running<T> {
    result: oneshot::Receiver<thread::Result<T>>,
    stop: Stop,
    ticket: QueueTicket,
    shared: Arc<PoolShared>,
}

impl<T> Running<T> {
    /// Waits for the result. Cancel safe. A panic of the work continues here.
    pub(super) async fn result(&mut self) -> T {
        match (&mut self.result).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => panic::resume_unwind(panic),
            Err(_) => unreachable!("work is removed only where nobody waits for it"),
        }
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.stop.0.store(true, Ordering::Relaxed);
        // The job may hold content: drop it without the lock.
        let job = self.shared.state.lock().queue.cancel(&self.ticket);
        drop(job);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{sync::mpsc, time::Duration};

    use super::*;

    fn pool(threads: usize) -> Pool {
        Pool::new(ComputeLimits { threads, queued_per_owner: 100, ..ComputeLimits::default() })
    }

    /// Work that runs until it is told to stop, and says when it began and ended.
    fn endless(pool: &Pool, owner: &str) -> (Running<()>, mpsc::Receiver<&'static str>) {
        let (sender, events) = mpsc::channel();
        let running = pool.submit(owner, move |stop| {
            sender.send("began").unwrap();
            while !stop.is_set() {
                thread::yield_now();
            }
            sender.send("ended").unwrap();
        });
        (running.unwrap(), events)
    }

    const DEADLINE: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn a_storm_of_one_owner_leaves_a_thread_to_others() {
        let pool = pool(3);
        let storm: Vec<_> = (0..100).map(|_| endless(&pool, "storm")).collect();
        for (_, events) in &storm[..2] {
            assert_eq!(events.recv_timeout(DEADLINE).unwrap(), "began");
        }
        let mut other = pool.submit("other", |_| 42).unwrap();
        let result = tokio::time::timeout(DEADLINE, other.result()).await;
        assert_eq!(result.expect("it does not wait for the storm"), 42);
    }

    #[test]
    fn dropped_work_stops_and_what_has_not_begun_never_does() {
        let pool = pool(2);
        let (first, events) = endless(&pool, "a");
        assert_eq!(events.recv_timeout(DEADLINE).unwrap(), "began");
        let (waiting, never) = endless(&pool, "a");
        drop(waiting);
        drop(first);
        assert_eq!(events.recv_timeout(DEADLINE).unwrap(), "ended");
        assert!(never.recv_timeout(DEADLINE).is_err(), "its work was dropped");
    }

    #[tokio::test]
    async fn fewer_threads_than_are_idle_still_run_what_comes_next() {
        let pool = pool(3);
        let running: Vec<_> = ["a", "b", "c"].map(|owner| endless(&pool, owner)).into();
        for (_, events) in &running {
            assert_eq!(events.recv_timeout(DEADLINE).unwrap(), "began");
        }
        drop(running);
        let idle = async {
            while pool.0.state.lock().idle < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(DEADLINE, idle).await.expect("all threads are idle");
        pool.set_limits(ComputeLimits { threads: 1, ..pool.limits() });
        for n in 0..3 {
            let mut work = pool.submit("a", move |_| n).unwrap();
            let result = tokio::time::timeout(DEADLINE, work.result()).await;
            assert_eq!(result.expect("an idle thread runs it"), n);
        }
        assert_eq!(pool.0.state.lock().threads, 1);
    }

    #[tokio::test]
    async fn a_panic_reaches_who_waits_and_the_thread_goes_on() {
        let pool = pool(1);
        let mut panics = pool.submit("a", |_| panic!("as the test wants")).unwrap();
        let outcome: Result<(), _> = tokio::spawn(async move { panics.result().await }).await;
        assert!(outcome.unwrap_err().is_panic());
        assert_eq!(pool.submit("a", |_| 1).unwrap().result().await, 1);
    }
}
