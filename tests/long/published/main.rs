//! The state that fast paths read without a lock, in every order that the memory model allows:
//! `src/storage/published.rs` with loom's atomics.
//!
//! In each test the first thread writes and the spawned threads read. Loom finds the orders in
//! which a read precedes a later write only if it runs the writing thread first.

#[allow(dead_code, unreachable_pub, reason = "the library uses all of it, this test what may race")]
#[path = "../../../src/storage/published.rs"]
mod published;

/// The atomics of the tested file.
mod atomics {
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
}

use atomics::{AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread;
use published::Published;

/// An address for comparisons; no memory is allocated there.
fn somewhere() -> *mut u8 {
    std::ptr::without_provenance_mut(4096)
}

/// Runs a model, and returns the number of interleavings that called `was_seen`.
fn orders_in_which(model: impl Fn(&dyn Fn()) + Send + Sync + 'static) -> u32 {
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let count = std::sync::Arc::clone(&seen);
    loom::model(move || {
        model(&|| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    });
    seen.load(Ordering::Relaxed)
}

#[test]
fn a_reader_that_finds_the_host_ready_finds_its_memory_and_contents() {
    let ready = orders_in_which(|was_ready| {
        let published = Arc::new(Published::new(std::ptr::null_mut(), false));
        let contents = Arc::new(AtomicU32::new(0));
        let reader = {
            let (published, contents) = (Arc::clone(&published), Arc::clone(&contents));
            thread::spawn(move || {
                published.ready_on_host().map(|base| (base, contents.load(Ordering::Relaxed)))
            })
        };
        published.set_host_base(somewhere());
        contents.store(7, Ordering::Relaxed);
        published.set_host_ready(true);
        if let Some(found) = reader.join().expect("no panic") {
            assert_eq!(found, (somewhere(), 7));
            was_ready();
        }
    });
    assert!(ready > 0, "in some order the reader comes last");
}

#[test]
fn a_known_reader_gets_its_own_address_or_none() {
    let known = orders_in_which(|was_known| {
        let published = Arc::new(Published::new(std::ptr::null_mut(), false));
        let readers = [5, 6].map(|stream| {
            let published = Arc::clone(&published);
            thread::spawn(move || published.reader_address(stream, 1))
        });
        published.publish_reader(1, 5, 50);
        published.publish_reader(1, 6, 60);
        for (reader, address) in readers.into_iter().zip([50, 60]) {
            let found = reader.join().expect("no panic");
            assert!(found.is_none() || found == Some(address), "{found:?}");
            found.iter().for_each(|_| was_known());
        }
    });
    assert!(known > 0, "in some order a reader comes last");
}

#[test]
fn readers_entered_before_a_failure_are_not_known_after_it() {
    orders_in_which(|_| {
        let published = Arc::new(Published::new(std::ptr::null_mut(), false));
        published.publish_reader(1, 5, 50);
        let reader = {
            let published = Arc::clone(&published);
            thread::spawn(move || {
                (
                    published.reader_address(5, 2),
                    published.reader_address(6, 2),
                    published.reader_address(5, 1),
                )
            })
        };
        published.publish_reader(2, 6, 60);
        assert_eq!(reader.join().expect("no panic"), (None, None, Some(50)));
        published.forget_readers();
        published.publish_reader(2, 6, 60);
        assert_eq!(
            (published.reader_address(5, 2), published.reader_address(6, 2)),
            (None, Some(60))
        );
    });
}
