//! Graphs: nodes with edges, and executable graphs.
//!
//! Each node of an executable graph runs on a stream of its own, which waits only for what the
//! edges say. So nodes run in any order that the edges allow, and the engine reports accesses that
//! no edge orders as hazards.

use std::ffi::c_void;
use std::mem::discriminant;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::arguments::In;
use crate::call;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::copy::{self, End, Extent, Return};
use crate::fill::{self, Rows};
use crate::handle::{self, Handle, Object};
use crate::interface::{interface, rules};
use crate::kernel::{self, Shape};
use crate::module::Function;
use crate::stream::Stream;
use resident_backend::{EventTiming, Position, RawEvent};

/// A graph.
#[derive(Debug)]
pub struct Graph {
    pub handle: Handle,
    pub context: Handle,
    nodes: Mutex<Vec<Node>>,
}

/// A graph that can be launched.
#[derive(Debug)]
pub struct Executable {
    pub handle: Handle,
    pub context: Handle,
    state: Mutex<State>,
}

#[derive(Clone, Debug)]
struct Node {
    handle: Handle,
    /// The nodes that it follows, by their indices.
    after: Vec<usize>,
    work: NodeWork,
}

/// What a node does.
#[derive(Clone, Debug)]
pub enum NodeWork {
    Launch { function: Arc<Function>, shape: Shape, values: Vec<Vec<u8>> },
    Copy { destination: End, source: End, extent: Extent },
    Fill { address: u64, pattern: Vec<u8>, rows: Rows },
}

#[derive(Debug)]
struct State {
    nodes: Vec<Node>,
    /// The stream of each node.
    streams: Vec<Arc<Stream>>,
    /// The ends of the nodes in the last launch.
    ends: Vec<Mark>,
}

/// A point of a stream: an event, and the work before it.
#[derive(Clone, Debug)]
struct Mark {
    event: Arc<dyn RawEvent>,
    work: Position,
}

impl Graph {
    /// Creates a graph without nodes.
    pub fn new(context: &Context) -> Arc<Self> {
        let (handle, nodes) = (handle::next(), Mutex::default());
        let graph = Arc::new(Self { handle, context: context.handle, nodes });
        handle::insert(handle, Object::Graph(Arc::clone(&graph)));
        graph
    }

    /// Adds a node that follows others.
    pub fn add(&self, after: &[Handle], work: NodeWork) -> Outcome<Handle> {
        work.check()?;
        let mut nodes = lock(&self.nodes);
        let place = |handle: &Handle| nodes.iter().position(|node| node.handle == *handle);
        let after: Option<Vec<usize>> = after.iter().map(place).collect();
        let (handle, after) = (handle::next(), after.ok_or(Code::INVALID_VALUE)?);
        nodes.push(Node { handle, after, work });
        Ok(handle)
    }
}

impl Executable {
    /// Instantiates a graph as it is now.
    pub fn new(context: &Context, graph: &Graph) -> Outcome<Arc<Self>> {
        const NON_BLOCKING: u32 = 1;
        let nodes = lock(&graph.nodes).clone();
        let stream = |_: &Node| Stream::new(context, NON_BLOCKING, 0);
        let streams = nodes.iter().map(stream).collect::<Outcome<_>>()?;
        let state = Mutex::new(State { nodes, streams, ends: Vec::new() });
        let executable = Arc::new(Self { handle: handle::next(), context: context.handle, state });
        handle::insert(executable.handle, Object::Executable(Arc::clone(&executable)));
        Ok(executable)
    }

    /// Changes a node for later launches. Only copies and fills of one row can be changed, and only
    /// if the kinds of memory stay.
    pub fn change(&self, node: Handle, work: NodeWork) -> Outcome {
        work.check()?;
        let mut state = lock(&self.state);
        let node = state.nodes.iter_mut().find(|known| known.handle == node);
        let node = node.filter(|known| known.work.may_become(&work)).ok_or(Code::INVALID_VALUE)?;
        node.work = work;
        Ok(())
    }

    /// Queues the nodes, behind the work of a stream and the last launch.
    pub fn launch(&self, context: &Context, stream: &Stream) -> Outcome {
        let mut state = lock(&self.state);
        let begin = Mark::of(context, stream)?;
        let mut ends: Vec<Mark> = Vec::new();
        for (node, own) in state.nodes.iter().zip(&state.streams) {
            if node.after.is_empty() {
                begin.make_wait(context, own)?;
                state.ends.iter().try_for_each(|end| end.make_wait(context, own))?;
            }
            node.after.iter().try_for_each(|index| ends[*index].make_wait(context, own))?;
            node.work.submit(context, own)?;
            ends.push(Mark::of(context, own)?);
        }
        let has_later = |index| state.nodes.iter().any(|node| node.after.contains(&index));
        let mut last = (0..ends.len()).filter(|index| !has_later(*index));
        last.try_for_each(|index| ends[index].make_wait(context, stream))?;
        state.ends = ends;
        Ok(())
    }

    /// Destroys the handle. Queued launches still run.
    pub fn destroy(&self) {
        let state = lock(&self.state);
        let is_running = |stream: &Arc<Stream>| stream.raw.completed() < stream.raw.tail();
        if !rules().keeps_running_graphs && state.streams.iter().any(is_running) {
            call::note("a graph was destroyed while a launch of it was in flight".to_owned());
        }
        for stream in &state.streams {
            handle::remove(stream.handle);
            stream.destroy();
        }
    }
}

impl NodeWork {
    /// A launch, whose values are copied.
    pub fn launch(
        function: Arc<Function>,
        shape: Shape,
        values: In<*const c_void>,
    ) -> Outcome<Self> {
        let values = kernel::values(&function, values)?;
        Ok(Self::Launch { function, shape, values })
    }

    fn check(&self) -> Outcome {
        match self {
            Self::Launch { function, shape, .. } => interface().check_shape(function, *shape),
            Self::Copy { extent, .. } if extent.len_bytes() == 0 => Err(Code::INVALID_VALUE),
            Self::Fill { rows, .. } if rows.count == 0 || rows.height == 0 => {
                Err(Code::INVALID_VALUE)
            }
            Self::Copy { .. } | Self::Fill { .. } => Ok(()),
        }
    }

    fn may_become(&self, other: &Self) -> bool {
        let is_row = |extent: &Extent| extent.height == 1 && extent.depth == 1;
        let are_alike = |one: &End, two: &End| discriminant(&one.place) == discriminant(&two.place);
        match (self, other) {
            (Self::Launch { .. }, Self::Launch { .. }) => true,
            (
                Self::Copy { destination: to, source: from, extent },
                Self::Copy { destination: new_to, source: new_from, extent: new_extent },
            ) => {
                is_row(extent)
                    && is_row(new_extent)
                    && are_alike(to, new_to)
                    && are_alike(from, new_from)
            }
            (Self::Fill { rows, .. }, Self::Fill { rows: new_rows, .. }) => {
                rows.height == 1 && new_rows.height == 1
            }
            _ => false,
        }
    }

    fn submit(&self, context: &Context, stream: &Stream) -> Outcome {
        match self {
            Self::Launch { function, shape, values } => {
                let values: Vec<*const u8> = values.iter().map(|value| value.as_ptr()).collect();
                let values = In::at(values.as_ptr().cast());
                kernel::launch(context, stream, function, *shape, values)
            }
            Self::Copy { destination, source, extent } => {
                copy::submit(context, stream, *destination, *source, *extent, Return::Early)
            }
            Self::Fill { address, pattern, rows } => {
                fill::submit(context, stream, *address, pattern, *rows)
            }
        }
    }
}

impl Mark {
    /// The end of what a stream has.
    fn of(context: &Context, stream: &Stream) -> Outcome<Self> {
        let work = stream.last();
        let event = stream.ordered(context, |raw| raw.record(EventTiming::Disabled))?;
        Ok(Self { event, work })
    }

    fn make_wait(&self, context: &Context, stream: &Stream) -> Outcome {
        stream.wait_for(context, self.event.as_ref(), Some(self.work))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
