//! Tracks of a trace, and the packets that describe them and their events.

use std::collections::BTreeMap;

use super::message::Message;

/// All packets are of one sequence.
const SEQUENCE: u64 = 1;

/// What a track shows. The tracks of one kind are together, in this order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Track {
    Thread { name: String },
    Link { direction: String },
    Stream { device: String, number: u32 },
}

/// An event of a track.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    pub(super) title: String,
    /// The start and the end; an instant has no end.
    pub(super) times: (u64, Option<u64>),
    pub(super) category: &'static str,
    /// Annotations.
    pub(super) details: Message,
    /// Arrows join the events that have the same number.
    pub(super) flows: Vec<u64>,
}

/// The events by track.
#[derive(Debug, Default)]
pub(super) struct Tracks(BTreeMap<Track, Vec<Slice>>);

impl Track {
    /// The name of the group of tracks, and of the track.
    fn names(&self) -> (String, String) {
        match self {
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
            None => {
                self.0.insert(track.clone(), vec![slice]);
            }
        }
    }

    /// The bytes of a `Trace`.
    pub(super) fn into_trace(self) -> Vec<u8> {
        let mut packets = Packets::default();
        for (track, slices) in self.0 {
            let (group, name) = track.names();
            let group = packets.group(&group);
            for lane in lanes(slices) {
                let lane_id = packets.describe(&name, Some(group));
                lane.iter().for_each(|slice| packets.slice(lane_id, slice));
            }
        }
        packets.trace.0
    }
}

/// The slices in lanes in which none overlap, since the slices of one track are a stack.
fn lanes(mut slices: Vec<Slice>) -> Vec<Vec<Slice>> {
    slices.sort_by_key(|slice| slice.times);
    let mut lanes: Vec<(u64, Vec<Slice>)> = Vec::new();
    for slice in slices {
        let (start_ns, end_ns) = (slice.times.0, slice.times.1.unwrap_or(slice.times.0));
        match lanes.iter_mut().find(|(lane_end_ns, _)| *lane_end_ns <= start_ns) {
            Some((lane_end_ns, lane)) => {
                *lane_end_ns = end_ns;
                lane.push(slice);
            }
            None => lanes.push((end_ns, vec![slice])),
        }
    }
    lanes.into_iter().map(|(_, lane)| lane).collect()
}

/// The packets of a trace.
#[derive(Default)]
struct Packets {
    trace: Message,
    /// The tracks that are groups.
    groups: BTreeMap<String, u64>,
    tracks: u64,
}

impl Packets {
    fn group(&mut self, name: &str) -> u64 {
        if let Some(known) = self.groups.get(name) {
            return *known;
        }
        let group = self.describe(name, None);
        self.groups.insert(name.to_owned(), group);
        group
    }

    /// Adds a `TrackDescriptor`, and returns its number.
    fn describe(&mut self, name: &str, parent: Option<u64>) -> u64 {
        self.tracks += 1;
        let mut descriptor = Message::default();
        descriptor.number(1, self.tracks);
        descriptor.text(2, name);
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
        let (start_ns, end_ns) = slice.times;
        let mut event = Message(slice.details.0.clone());
        event.number(9, if end_ns.is_some() { BEGIN } else { INSTANT });
        event.number(11, track);
        event.text(22, slice.category);
        event.text(23, &slice.title);
        slice.flows.iter().for_each(|flow| event.fixed(47, *flow));
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
        packet.number(8, time_ns);
        packet.number(10, SEQUENCE);
        packet.message(11, event);
        self.trace.message(1, &packet);
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, Slice, lanes};

    fn slice(times: (u64, Option<u64>)) -> Slice {
        let details = Message::default();
        Slice { title: String::new(), times, category: "copy", details, flows: Vec::new() }
    }

    /// All sets of three slices within four steps of time.
    #[test]
    fn no_slices_of_a_lane_overlap_and_all_are_in_one() {
        let all: Vec<(u64, Option<u64>)> = (0..4)
            .flat_map(|start| (start..5).map(move |end| (start, Some(end))).chain([(start, None)]))
            .collect();
        for first in &all {
            for second in &all {
                for third in &all {
                    let lanes = lanes([first, second, third].map(|times| slice(*times)).into());
                    assert_eq!(lanes.iter().map(Vec::len).sum::<usize>(), 3);
                    for pair in lanes.iter().flat_map(|lane| lane.windows(2)) {
                        assert!(pair[0].times.1.unwrap_or(pair[0].times.0) <= pair[1].times.0);
                    }
                }
            }
        }
    }
}
