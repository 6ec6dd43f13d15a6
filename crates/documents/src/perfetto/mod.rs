//! Documents as traces for Perfetto: <https://perfetto.dev>. The format is that of the published
//! `perfetto_trace.proto`: a list of packets, each a track's description or an event of a track.

mod counters;
mod message;
mod tracks;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use self::message::Message;
use self::tracks::{Packets, Slice, Times, Track, Tracks};
use crate::document::{
    Document, DocumentAccess, DocumentBarrier, DocumentMemory, DocumentMessage, DocumentRecord,
};
use crate::file::write_file;
use crate::text::shown;
use crate::totals::grouped;

impl Document {
    /// Writes a trace to a file, as
    /// [`Report::write_perfetto`](struct.Report.html#method.write_perfetto).
    ///
    /// # Errors
    ///
    /// The system's, if the file cannot be written; the text names the file.
    pub fn write_perfetto(&self, path: impl AsRef<Path>) -> io::Result<()> {
        write_file(path.as_ref(), &trace(self))
    }
}

/// One process of several, whose traces are joined.
#[derive(Clone, Copy, Debug)]
pub struct ProcessTrace<'a> {
    /// Its number in the trace: not 0, and another for each process.
    pub number: u64,
    /// The name of its group of tracks.
    pub name: &'a str,
    /// Its report.
    pub document: &'a Document,
    /// What is added to its times.
    pub shift_ns: u64,
}

/// Writes one trace of several processes to a file: a group of tracks for each of them.
///
/// # Errors
///
/// The system's, if the file cannot be written; the text names the file.
pub fn write_perfetto_of_processes(
    path: impl AsRef<Path>,
    processes: &[ProcessTrace<'_>],
) -> io::Result<()> {
    write_file(path.as_ref(), &trace_of_processes(processes))
}

/// The bytes of the trace of several processes.
pub(crate) fn trace_of_processes(processes: &[ProcessTrace<'_>]) -> Vec<u8> {
    let mut packets = Packets::default();
    for ProcessTrace { number, name, document, shift_ns } in processes {
        packets.begin_process(*number, name, *shift_ns);
        add(&mut packets, document);
    }
    packets.into_trace()
}

/// The bytes of the trace.
pub(crate) fn trace(document: &Document) -> Vec<u8> {
    let mut packets = Packets::default();
    add(&mut packets, document);
    packets.into_trace()
}

fn add(packets: &mut Packets, document: &Document) {
    let mut tracks = tracks(document);
    if let Some(note) = note(document) {
        let slice = Slice::new("note", note, Times::at(0), Message::default());
        tracks.add(&Track::Note, slice);
    }
    packets.add(tracks);
    counters::add(packets, document);
}

/// What a trace has not.
fn note(document: &Document) -> Option<String> {
    match document.records_forgotten {
        0 if document.records.is_empty() => {
            Some("nothing was copied, launched or waited for".to_owned())
        }
        0 => None,
        1 => Some("1 earlier record is not in this trace".to_owned()),
        forgotten => Some(format!("{} earlier records are not in this trace", grouped(forgotten))),
    }
}

fn tracks(document: &Document) -> Tracks {
    let launches: BTreeMap<u64, Launched> = launched(document);
    let mut tracks = Tracks::default();
    for record in &document.records {
        match record {
            DocumentRecord::Copy { .. } => add_copy(&mut tracks, record, &launches),
            DocumentRecord::Launch { .. } => add_launch(&mut tracks, record, &launches),
            DocumentRecord::Wait { .. } => add_wait(&mut tracks, record),
            DocumentRecord::Allocation(memory) => add_memory(&mut tracks, "allocate", memory),
            DocumentRecord::Eviction(memory) => add_memory(&mut tracks, "evict", memory),
            DocumentRecord::Discard(memory) => {
                add_memory(&mut tracks, "discard a copy of", memory);
            }
            DocumentRecord::Access(access) => add_access(&mut tracks, access),
            DocumentRecord::Message(message) => add_message(&mut tracks, message),
            DocumentRecord::Barrier(barrier) => add_barrier(&mut tracks, barrier),
        }
    }
    tracks
}

/// When a launch was called, and when it was queued.
#[derive(Clone, Copy)]
struct Launched {
    began_ns: u64,
    queued_ns: u64,
}

/// The launches by their ids.
fn launched(document: &Document) -> BTreeMap<u64, Launched> {
    let mut launches = BTreeMap::new();
    for record in &document.records {
        if let DocumentRecord::Launch { id, called_ns, queued_ns, .. } = record {
            let began_ns = called_ns.unwrap_or(*queued_ns);
            launches.insert(*id, Launched { began_ns, queued_ns: *queued_ns });
        }
    }
    for record in &document.records {
        if let DocumentRecord::Copy { queued_ns, launch: Some(launch), .. } = record
            && let Some(launched) = launches.get_mut(launch)
        {
            launched.began_ns = launched.began_ns.min(*queued_ns);
        }
    }
    launches
}

fn add_copy(tracks: &mut Tracks, record: &DocumentRecord, launches: &BTreeMap<u64, Launched>) {
    let DocumentRecord::Copy {
        queued_ns,
        started_ns,
        finished_ns,
        thread,
        device,
        stream,
        site,
        name,
        direction,
        source,
        bytes,
        padding,
        cause,
        stale_since,
        launch,
        ..
    } = record
    else {
        return;
    };
    let mut details = Message::default();
    details.annotate_text("array", name);
    details.annotate_number("bytes", *bytes);
    details.annotate_number("padding", *padding);
    details.annotate_text("direction", direction);
    details.annotate_text("cause", cause);
    details.annotate_text("site", site);
    details.annotate_text("thread", thread);
    let optional = [("stale_since", stale_since), ("source", source)];
    for (key, value) in optional {
        value.iter().for_each(|value| details.annotate_text(key, value));
    }
    let times = times_of(*queued_ns, *started_ns, *finished_ns);
    let title = format!("{} {}", shown(name), shown(direction));
    let known = launch.filter(|launch| launches.contains_key(launch));
    let slice = Slice::new("copy", title, times, details);
    tracks.add(&Track::Link { direction: direction.clone() }, slice.clone());
    let flows = known.into_iter().collect();
    tracks.add(&stream_track(device, *stream), Slice { flows, ..slice });
}

fn add_launch(tracks: &mut Tracks, record: &DocumentRecord, launches: &BTreeMap<u64, Launched>) {
    let DocumentRecord::Launch {
        id,
        queued_ns,
        started_ns,
        finished_ns,
        thread,
        device,
        stream,
        site,
        name,
        ..
    } = record
    else {
        return;
    };
    let mut details = Message::default();
    details.annotate_text("kernel", name);
    details.annotate_text("site", site);
    details.annotate_text("thread", thread);
    let launched = launches.get(id);
    let instant = Times::at(*queued_ns);
    let called = launched.map_or(instant, |it| Times::of(it.began_ns, it.queued_ns));
    let title = format!("launch {}", shown(name));
    let call = Slice { flows: vec![*id], ..Slice::new("launch", title, called, details) };
    let times = times_of(*queued_ns, *started_ns, *finished_ns);
    let run = Slice { title: shown(name), times, category: "kernel", ..call.clone() };
    tracks.add(&Track::Thread { name: thread.clone() }, call);
    tracks.add(&stream_track(device, *stream), run);
}

fn add_wait(tracks: &mut Tracks, record: &DocumentRecord) {
    let DocumentRecord::Wait { queued_ns, finished_ns, thread, device, stream, site, reason } =
        record
    else {
        return;
    };
    let mut details = Message::default();
    details.annotate_text("site", site);
    details.annotate_text("reason", reason);
    let title = format!("wait for {device} stream {stream}");
    let slice = Slice::new("wait", title, Times::of(*queued_ns, *finished_ns), details);
    tracks.add(&Track::Thread { name: thread.clone() }, slice);
}

fn add_memory(tracks: &mut Tracks, verb: &str, memory: &DocumentMemory) {
    let mut details = Message::default();
    details.annotate_text("device", &memory.device);
    details.annotate_text("site", &memory.site);
    details.annotate_number("bytes", memory.bytes);
    let title = format!("{verb} {}", shown(&memory.name));
    let slice = Slice::new("memory", title, Times::at(memory.queued_ns), details);
    tracks.add(&Track::Thread { name: memory.thread.clone() }, slice);
}

fn add_access(tracks: &mut Tracks, access: &DocumentAccess) {
    let mut details = Message::default();
    details.annotate_text("device", access.device.as_deref().unwrap_or("host"));
    details.annotate_text("site", &access.site);
    details.annotate_text("access", &access.access);
    let title = format!("access {}", shown(&access.name));
    let slice = Slice::new("access", title, Times::at(access.queued_ns), details);
    tracks.add(&Track::Thread { name: access.thread.clone() }, slice);
}

/// A message is from the beginning of the wait for it to its record; an instant without a wait.
fn add_message(tracks: &mut Tracks, message: &DocumentMessage) {
    let DocumentMessage { name, direction, peer, bytes, site, thread, .. } = message;
    let mut details = Message::default();
    details.annotate_text("array", name);
    details.annotate_number("bytes", *bytes);
    if let Some(peer) = peer {
        details.annotate_number("peer", u64::from(*peer));
    }
    details.annotate_text("device", &message.device);
    details.annotate_text("cause", &message.cause);
    details.annotate_text("site", site);
    details.annotate_text("thread", thread);
    let title = format!("{} {}, {}", shown(name), shown(direction), rank_or_all(*peer));
    let times = waited(message.queued_ns, message.waited_ns);
    let slice = Slice::new("message", title, times, details);
    tracks.add(&Track::Link { direction: direction.clone() }, slice);
}

fn rank_or_all(peer: Option<u32>) -> String {
    peer.map_or_else(|| String::from("all ranks"), |rank| format!("rank {rank}"))
}

fn add_barrier(tracks: &mut Tracks, barrier: &DocumentBarrier) {
    let mut details = Message::default();
    details.annotate_text("site", &barrier.site);
    details.annotate_number("number", barrier.number);
    let times = waited(barrier.queued_ns, barrier.waited_ns);
    let slice = Slice::new("barrier", "barrier".to_owned(), times, details);
    tracks.add(&Track::Thread { name: barrier.thread.clone() }, slice);
}

/// From the beginning of a wait to its end.
fn waited(end_ns: u64, waited_ns: u64) -> Times {
    match waited_ns {
        0 => Times::at(end_ns),
        _ => Times::of(end_ns.saturating_sub(waited_ns), end_ns),
    }
}

fn stream_track(device: &str, stream: u32) -> Track {
    Track::Stream { device: device.to_owned(), number: stream }
}

/// The start, and the end if the device's times are known.
fn times_of(queued_ns: u64, started_ns: Option<u64>, finished_ns: Option<u64>) -> Times {
    let ran = started_ns.zip(finished_ns);
    ran.map_or(Times::at(queued_ns), |(started_ns, finished_ns)| Times::of(started_ns, finished_ns))
}
