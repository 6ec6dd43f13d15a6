//! Tracks of a trace, and the packets that describe them and their events.

use std::collections::BTreeMap;

use super::message::Message;
use crate::text::{shown, visible};

/// All packets are of one sequence.
const SEQUENCE: u64 = 1;

/// What a track shows. The tracks of one kind are together, in this order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Track {
    /// What the trace has not.
    Note,
    Thread {
        name: String,
    },
    Link {
        direction: String,
    },
    Stream {
        device: String,
        number: u32,
    },
}

/// When an event of a track happens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Times {
    start_ns: u64,
    /// An instant has no end.
    end_ns: Option<u64>,
}

impl Times {
    pub(super) fn at(start_ns: u64) -> Self {
        Self { start_ns, end_ns: None }
    }

    pub(super) fn of(start_ns: u64, end_ns: u64) -> Self {
        Self { start_ns, end_ns: Some(end_ns) }
    }

    /// When the next event of its lane may begin.
    fn over_ns(self) -> u64 {
        self.end_ns.unwrap_or(self.start_ns)
    }
}

/// An event of a track.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub(super) title: String,
    pub(super) times: Times,
    pub(super) category: &'static str,
    /// Annotations.
    pub(super) details: Message,
    /// Arrows join the events that have the same number.
    pub(super) flows: Vec<u64>,
}

impl Slice {
    pub(super) fn new(
        category: &'static str,
        title: String,
        times: Times,
        details: Message,
    ) -> Self {
        Self { title, times, category, details, flows: Vec::new() }
    }
}

/// A number at some times, in their order.
pub(super) struct Counter {
    /// The name of the group of tracks that it is in, and its own.
    pub(super) group: String,
    pub(super) name: String,
    /// Nanoseconds, and the bytes then.
    pub(super) points: Vec<(u64, u64)>,
}

/// The events by track.
#[derive(Debug, Default)]
pub(super) struct Tracks(BTreeMap<Track, Vec<Slice>>);

impl Track {
    /// The name of the group of tracks, and of the track.
    fn names(&self) -> (String, String) {
        match self {
            Self::Note => ("notes".to_owned(), "note".to_owned()),
            Self::Thread { name } => ("host".to_owned(), name.clone()),
            Self::Link { direction } => ("link".to_owned(), direction.replace('_', " ")),
            Self::Stream { device, number } => (device.clone(), format!("stream {number}")),
        }
    }
}

impl Tracks {
    pub(super) fn add(&mut self, track: &Track, slice: Slice) {
        match self.0.get_mut(track) {
            Some(slices) => slices.push(slice),
            None => drop(self.0.insert(track.clone(), vec![slice])),
        }
    }
}

/// The slices in lanes in which none overlap, since the slices of one track are a stack.
fn lanes(mut slices: Vec<Slice>) -> Vec<Vec<Slice>> {
    slices.sort_by_key(|slice| slice.times);
    let mut lanes: Vec<Vec<Slice>> = Vec::new();
    for slice in slices {
        let start_ns = slice.times.start_ns;
        let is_free = |lane: &&mut Vec<Slice>| {
            lane.last().is_none_or(|last| last.times.over_ns() <= start_ns)
        };
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(slice),
            None => lanes.push(vec![slice]),
        }
    }
    lanes
}

/// The packets of a trace.
#[derive(Default)]
pub(super) struct Packets {
    trace: Message,
    /// The tracks of the process that are groups.
    groups: BTreeMap<String, u64>,
    tracks: u64,
    process: Process,
}

/// The process whose tracks are added, if the trace is of several.
#[derive(Clone, Copy, Default)]
struct Process {
    number: u64,
    /// The track of the process.
    track: Option<u64>,
    shift_ns: u64,
}

impl Process {
    /// An arrow of this process: its number is its own only within the process.
    fn flow(self, flow: u64) -> u64 {
        flow ^ self.number << 40
    }
}

impl Packets {
    /// The tracks that are added from now on are those of this process, and so much later.
    pub(super) fn begin_process(&mut self, number: u64, name: &str, shift_ns: u64) {
        let mut descriptor = Message::default();
        descriptor.number(1, number);
        descriptor.text(6, name);
        let track = self.describe_as(name, None, Some((3, &descriptor)));
        self.groups.clear();
        self.process = Process { number, track: Some(track), shift_ns };
    }

    pub(super) fn add(&mut self, tracks: Tracks) {
        for (track, slices) in tracks.0 {
            let (group, name) = track.names();
            let group = self.group(&group);
            for lane in lanes(slices) {
                let lane_id = self.describe(&name, Some(group));
                lane.iter().for_each(|slice| self.slice(lane_id, slice));
            }
        }
    }

    /// Adds a number over time, in bytes.
    pub(super) fn counter(&mut self, counter: &Counter) {
        const COUNTER: u64 = 4;
        const UNIT_SIZE_BYTES: u64 = 3;
        let mut unit = Message::default();
        unit.number(3, UNIT_SIZE_BYTES);
        let group = self.group(&counter.group);
        let track = self.describe_as(&counter.name, Some(group), Some((8, &unit)));
        for (time_ns, bytes) in &counter.points {
            let mut event = Message::default();
            event.number(9, COUNTER);
            event.number(11, track);
            // The field is an `int64`.
            event.number(30, (*bytes).min(i64::MAX as u64));
            self.event(*time_ns, &event);
        }
    }

    /// The bytes of a `Trace`.
    pub(super) fn into_trace(self) -> Vec<u8> {
        self.trace.0
    }

    fn group(&mut self, name: &str) -> u64 {
        if let Some(known) = self.groups.get(name) {
            return *known;
        }
        let group = self.describe(name, self.process.track);
        self.groups.insert(name.to_owned(), group);
        group
    }

    /// Adds a `TrackDescriptor`, and returns its number.
    fn describe(&mut self, name: &str, parent: Option<u64>) -> u64 {
        self.describe_as(name, parent, None)
    }

    /// As [`describe`](Self::describe), of the track of a process or of a counter if there is a
    /// description of one: its field, and the description.
    fn describe_as(
        &mut self,
        name: &str,
        parent: Option<u64>,
        special: Option<(u32, &Message)>,
    ) -> u64 {
        self.tracks += 1;
        let mut descriptor = Message::default();
        descriptor.number(1, self.tracks);
        descriptor.text(2, &shown(name));
        special.into_iter().for_each(|(field, of)| descriptor.message(field, of));
        parent.into_iter().for_each(|parent| descriptor.number(5, parent));
        let mut packet = Message::default();
        packet.number(10, SEQUENCE);
        packet.message(60, &descriptor);
        self.trace.message(1, &packet);
        self.tracks
    }

    fn slice(&mut self, track: u64, slice: &Slice) {
        const BEGIN: u64 = 1;
        const END: u64 = 2;
        const INSTANT: u64 = 3;
        let Times { start_ns, end_ns } = slice.times;
        let mut event = Message(slice.details.0.clone());
        event.number(9, if end_ns.is_some() { BEGIN } else { INSTANT });
        event.number(11, track);
        event.text(22, slice.category);
        event.text(23, &visible(&slice.title));
        slice.flows.iter().for_each(|flow| event.fixed(47, self.process.flow(*flow)));
        self.event(start_ns, &event);
        if let Some(end_ns) = end_ns {
            let mut event = Message::default();
            event.number(9, END);
            event.number(11, track);
            self.event(end_ns, &event);
        }
    }

    /// Adds a `TrackEvent`.
    fn event(&mut self, time_ns: u64, event: &Message) {
        let mut packet = Message::default();
        packet.number(8, time_ns.saturating_add(self.process.shift_ns));
        packet.number(10, SEQUENCE);
        packet.message(11, event);
        self.trace.message(1, &packet);
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, Slice, Times, lanes};

    fn slice(times: Times) -> Slice {
        Slice::new("copy", String::new(), times, Message::default())
    }

    /// All sets of three slices within four steps of time.
    #[test]
    fn no_slices_of_a_lane_overlap_and_all_are_in_one() {
        let from = |start| (start..5).map(move |end| Times::of(start, end));
        let all: Vec<Times> =
            (0..4).flat_map(|start| from(start).chain([Times::at(start)])).collect();
        for first in &all {
            for second in &all {
                for third in &all {
                    let lanes = lanes([first, second, third].map(|times| slice(*times)).into());
                    assert_eq!(lanes.iter().map(Vec::len).sum::<usize>(), 3);
                    for pair in lanes.iter().flat_map(|lane| lane.windows(2)) {
                        assert!(pair[0].times.over_ns() <= pair[1].times.start_ns);
                    }
                }
            }
        }
    }
}
