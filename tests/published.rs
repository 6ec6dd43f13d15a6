//! What the fast paths read without a lock, in every order that the memory model allows: `src/storage/published.rs` with loom's atomics.

#[allow(dead_code, unreachable_pub, reason = "the library uses all of it, this test what may race")]
#[path = "../src/storage/published.rs"]
mod published;

/// What the file takes its atomics from.
mod atomics {
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
}

use atomics::{AtomicU32, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use published::Published;

/// An address to compare; nothing lies there.
fn somewhere() -> *mut u8 {
    std::ptr::without_provenance_mut(4096)
}

#[test]
fn whoever_finds_the_host_ready_finds_its_memory_and_contents() {
    loom::model(|| {
        let published = Arc::new(Published::new(std::ptr::null_mut(), false));
        let contents = Arc::new(AtomicU32::new(0));
        let writer = {
            let (published, contents) = (Arc::clone(&published), Arc::clone(&contents));
            thread::spawn(move || {
                published.set_host_base(somewhere());
                contents.store(7, Ordering::Relaxed);
                published.set_host_ready(true);
            })
        };
        if let Some(base) = published.ready_on_host() {
            assert_eq!((base, contents.load(Ordering::Relaxed)), (somewhere(), 7));
        }
        writer.join().expect("no panic");
        assert_eq!(published.ready_on_host(), Some(somewhere()));
    });
}

#[test]
fn a_known_reader_never_gets_the_address_of_another() {
    loom::model(|| {
        let published = Arc::new(Published::new(std::ptr::null_mut(), false));
        let lock = Arc::new(Mutex::new(()));
        let entering = [(5, 50), (6, 60)].map(|(stream, address)| {
            let (published, lock) = (Arc::clone(&published), Arc::clone(&lock));
            thread::spawn(move || {
                let _held = lock.lock().expect("no panic");
                published.know(1, stream, address);
            })
        });
        for stream in [5, 6] {
            assert!([None, Some(10 * stream)].contains(&published.known_to(stream, 1)));
        }
        entering.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!((published.known_to(5, 1), published.known_to(6, 1)), (Some(50), Some(60)));
    });
}

#[test]
fn readers_entered_before_a_failure_are_not_known_after_it() {
    loom::model(|| {
        let published = Arc::new(Published::new(std::ptr::null_mut(), false));
        published.know(1, 5, 50);
        let later = {
            let published = Arc::clone(&published);
            thread::spawn(move || published.know(2, 6, 60))
        };
        assert_eq!((published.known_to(5, 2), published.known_to(6, 2)), (None, None));
        assert_eq!(published.known_to(5, 1), Some(50));
        later.join().expect("no panic");
        published.forget_known();
        published.know(2, 6, 60);
        assert_eq!((published.known_to(5, 2), published.known_to(6, 2)), (None, Some(60)));
    });
}
