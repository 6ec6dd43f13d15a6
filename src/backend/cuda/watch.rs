//! Tasks that wait for a stream: one thread looks on their behalf, since the driver runs no code of
//! ours that may call it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use super::stream::QueueCore;
use crate::backend::{BackendError, BackendErrorKind, Position};

/// The first pause between two looks; it doubles while nothing happens.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// Somebody to be woken.
#[derive(Debug)]
struct Watched {
    queue: Arc<QueueCore>,
    position: Position,
    waker: Waker,
}

#[derive(Debug)]
struct Watch {
    list: Vec<Watched>,
    /// The thread runs.
    is_on: bool,
}

static WATCH: Mutex<Watch> = Mutex::new(Watch { list: Vec::new(), is_on: false });
static ARRIVED: Condvar = Condvar::new();

/// Wakes `waker` once everything up to `position` is over.
pub(super) fn wake_when_over(
    queue: &Arc<QueueCore>,
    position: Position,
    waker: Waker,
) -> Result<(), BackendError> {
    if queue.is_over(position) {
        waker.wake();
        return Ok(());
    }
    let mut watch = lock();
    if !watch.is_on {
        thread::Builder::new()
            .name("resident cuda".to_owned())
            .spawn(look)
            .map_err(|fault| no_thread(&fault))?;
        watch.is_on = true;
    }
    watch.list.push(Watched { queue: Arc::clone(queue), position, waker });
    ARRIVED.notify_one();
    Ok(())
}

/// The thread: it sleeps while nobody waits.
fn look() {
    let mut pause = PAUSE_MIN;
    loop {
        let mut watch = lock();
        if watch.list.is_empty() {
            pause = PAUSE_MIN;
            watch = ARRIVED.wait(watch).unwrap_or_else(PoisonError::into_inner);
        }
        let list = std::mem::take(&mut watch.list);
        drop(watch);
        let (over, pending): (Vec<Watched>, Vec<Watched>) =
            list.into_iter().partition(|watched| watched.queue.is_over(watched.position));
        pause = if over.is_empty() { (pause * 2).min(PAUSE_MAX) } else { PAUSE_MIN };
        over.into_iter().for_each(wake);
        let is_pending = !pending.is_empty();
        lock().list.extend(pending);
        if is_pending {
            thread::sleep(pause);
        }
    }
}

/// A waker runs code of its own; what panics there has told through the panic hook.
fn wake(Watched { queue, waker, .. }: Watched) {
    // First the stream, then the waker: who is woken finds nobody else holding on to what it drops.
    drop(queue);
    let woken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| waker.wake()));
    if let Err(payload) = woken {
        std::mem::forget(payload);
    }
}

fn lock() -> MutexGuard<'static, Watch> {
    WATCH.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_thread(fault: &std::io::Error) -> BackendError {
    let kind = BackendErrorKind::Driver { code: fault.raw_os_error().map_or(-1, i64::from) };
    BackendError {
        kind,
        call: "notify",
        detail: format!("the thread that watches could not be started: {fault}"),
    }
}
