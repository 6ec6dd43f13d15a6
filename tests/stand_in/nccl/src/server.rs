//! Answers the ranks that other processes have of the worlds of this one.

use std::collections::HashMap;
use std::io::{self, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::link::Address;
use crate::request::{self, Answer, Envelope, Request};
use crate::status::{Outcome, Status};
use crate::world::World;

/// The worlds of this process, by number; `None` until the first rank comes.
static WORLDS: Mutex<Option<HashMap<u64, Option<Arc<World>>>>> = Mutex::new(None);

/// A new world.
pub(crate) fn new_world() -> Outcome<Address> {
    let process = process().ok_or(Status::SYSTEM_ERROR)?.into();
    let world = with(|worlds| {
        let number = worlds.len() as u64 + 1;
        worlds.insert(number, None);
        number
    });
    Ok(Address { process, world })
}

/// Whether a world is one of this process.
pub(crate) fn is_here(address: &Address) -> bool {
    PROCESS.get().and_then(Option::as_ref) == Some(&address.process)
}

/// The world of this process with the number, for so many ranks.
pub(crate) fn world(number: u64, ranks: usize) -> Outcome<Arc<World>> {
    with(|worlds| {
        let known = worlds.get_mut(&number).ok_or(Status::INVALID_ARGUMENT)?;
        let world = known.get_or_insert_with(|| Arc::new(World::new(ranks)));
        if world.size() == ranks { Ok(Arc::clone(world)) } else { Err(Status::INVALID_ARGUMENT) }
    })
}

fn with<T>(body: impl FnOnce(&mut HashMap<u64, Option<Arc<World>>>) -> T) -> T {
    body(WORLDS.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

/// The name of this process's socket, once it answers.
static PROCESS: OnceLock<Option<String>> = OnceLock::new();

fn process() -> Option<&'static String> {
    PROCESS.get_or_init(|| listen().ok()).as_ref()
}

fn listen() -> io::Result<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    // As long as the id has room for.
    let process = format!("resident-nccl-{}-{now:x}", std::process::id());
    let address = Address { process, world: 0 };
    let listener = UnixListener::bind_addr(&address.socket()?)?;
    let accept = move || {
        for socket in listener.incoming().flatten() {
            let answer = || answer(socket);
            // Without a thread, the other end sees the connection closed.
            let _started = thread::Builder::new().name("nccl rank".into()).spawn(answer);
        }
    };
    thread::Builder::new().name("nccl ranks".into()).spawn(accept)?;
    Ok(address.process)
}

/// Answers a request. The connection of a rank that joins stays open until its process lets go of
/// the rank, or is gone.
fn answer(mut socket: UnixStream) {
    let Ok(Envelope { world: number, rank, ranks, request }) = request::read(&mut socket) else {
        return;
    };
    let is_join = matches!(request, Request::Join { .. });
    let (world, answer) = match world(number, ranks) {
        Ok(world) => {
            let answer = world.answer(rank, request);
            (Some(world), answer)
        }
        Err(status) => (None, Answer::Status(status)),
    };
    let has_joined = is_join && matches!(answer, Answer::Done);
    let is_told = request::write(&mut socket, &answer).is_ok();
    if let (true, Some(world)) = (has_joined, world) {
        let mut nothing = [0];
        if is_told {
            let _end = socket.read(&mut nothing);
        }
        world.answer(rank, Request::Abort);
    }
}
