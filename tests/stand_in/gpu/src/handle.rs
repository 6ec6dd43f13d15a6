//! Handles: numbers that identify objects. They are never used as pointers and never reused, so a
//! stale handle is detected.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::event::Event;
use crate::graph::{Executable, Graph};
use crate::ledger::Pool;
use crate::mappings::Memory;
use crate::module::{Function, Module};
use crate::stream::Stream;

/// A handle has the size of a C pointer.
pub type Handle = u64;

/// The object that a handle identifies.
#[derive(Clone, Debug)]
pub enum Object {
    Context(Arc<Context>),
    Stream(Arc<Stream>),
    Event(Arc<Event>),
    Module(Arc<Module>),
    Function(Arc<Function>),
    Pool(Arc<Pool>),
    Memory(Arc<Memory>),
    Graph(Arc<Graph>),
    Executable(Arc<Executable>),
}

static OBJECTS: Mutex<Option<HashMap<Handle, Object>>> = Mutex::new(None);

/// Creates a handle. Handles are odd addresses far from any memory, so that a dereference faults.
pub fn next() -> Handle {
    static NEXT: AtomicU64 = AtomicU64::new(0xC0DA_0000_0000_0100);
    NEXT.fetch_add(0x10, Ordering::Relaxed)
}

/// Assigns an object to a handle.
pub fn insert(handle: Handle, object: Object) {
    objects().get_or_insert_default().insert(handle, object);
}

/// Removes a handle and returns its object, which the caller drops after the lock is released.
pub fn remove(handle: Handle) -> Option<Object> {
    objects().as_mut()?.remove(&handle)
}

/// Removes all objects of a context.
pub fn remove_of_context(context: Handle) -> Vec<Object> {
    let mut objects = objects();
    let Some(objects) = objects.as_mut() else { return Vec::new() };
    let is_of = |object: &Object| match object {
        Object::Context(object) => object.handle == context,
        Object::Stream(object) => object.context == context,
        Object::Event(object) => object.context == context,
        Object::Module(object) => object.context == context,
        Object::Function(object) => object.context == context,
        Object::Graph(object) => object.context == context,
        Object::Executable(object) => object.context == context,
        Object::Pool(_) | Object::Memory(_) => false,
    };
    let doomed: Vec<Handle> =
        objects.iter().filter(|(_, object)| is_of(object)).map(|(handle, _)| *handle).collect();
    doomed.iter().filter_map(|handle| objects.remove(handle)).collect()
}

macro_rules! lookups {
    ($($name:ident, $variant:ident, $object:ty;)*) => {$(
        pub fn $name(handle: Handle) -> Outcome<Arc<$object>> {
            match objects().as_ref().and_then(|objects| objects.get(&handle)) {
                Some(Object::$variant(object)) => Ok(Arc::clone(object)),
                _ => Err(Code::INVALID_HANDLE),
            }
        }
    )*};
}

lookups! {
    context, Context, Context;
    stream, Stream, Stream;
    event, Event, Event;
    module, Module, Module;
    function, Function, Function;
    pool, Pool, Pool;
    memory, Memory, Memory;
    graph, Graph, Graph;
    executable, Executable, Executable;
}

fn objects() -> MutexGuard<'static, Option<HashMap<Handle, Object>>> {
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}
