"""Reads a trace by the schema that Perfetto publishes (the package `perfetto` of the Python package
index has it), and checks that each event belongs to a described track, that each slice ends, and
that counters add up what the copies moved."""

import sys
import unicodedata

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import (CounterDescriptor, Trace,
                                                               TrackEvent)


def main(path):
    trace = Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    # What is written under another number than the schema's would be an unknown field.
    assert Trace.FromString(trace.SerializeToString()) == trace
    tracks, open_slices, flows, times = {}, {}, {}, []
    counters, moved = {}, {}
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.name and descriptor.uuid
            assert not descriptor.HasField("parent_uuid") or descriptor.parent_uuid in tracks
            tracks[descriptor.uuid] = descriptor.name
            if descriptor.HasField("counter"):
                assert descriptor.counter.unit == CounterDescriptor.UNIT_SIZE_BYTES
                counters[descriptor.uuid] = []
            continue
        event = packet.track_event
        assert packet.HasField("timestamp") and event.track_uuid in tracks, packet
        if event.type == TrackEvent.TYPE_COUNTER:
            assert event.HasField("counter_value") and event.counter_value >= 0, event
            counters[event.track_uuid].append((packet.timestamp, event.counter_value))
            continue
        assert event.track_uuid not in counters, event
        begins = {TrackEvent.TYPE_SLICE_BEGIN: 1, TrackEvent.TYPE_SLICE_END: -1}
        change = begins.get(event.type, 0)
        assert change or event.type == TrackEvent.TYPE_INSTANT, event
        open_slices[event.track_uuid] = open_slices.get(event.track_uuid, 0) + change
        assert open_slices[event.track_uuid] in (0, 1)
        if change >= 0:
            assert event.name and event.categories, event
            assert all(item.name for item in event.debug_annotations)
            times.append(packet.timestamp)
            assert not any(is_hostile(character) for character in event.name), event
            add_moved(moved, tracks[event.track_uuid], event)
        for flow in event.flow_ids:
            flows[flow] = flows.get(flow, 0) + 1
    assert not any(open_slices.values()) and times
    assert all(ends >= 2 for ends in flows.values()), flows
    assert all(points == sorted(points, key=lambda point: point[0]) for points in counters.values())
    totals = {}
    for track, points in counters.items():
        totals[tracks[track]] = totals.get(tracks[track], 0) + points[-1][1]
    for direction, total in moved.items():
        assert totals[f"bytes {direction}"] == total, (direction, total, totals)
    print(f"{len(times)} events on {len(tracks)} tracks, {len(counters)} of them counters, "
          f"{len(flows)} launches with arrows: {', '.join(sorted(set(tracks.values())))}")


def is_hostile(character):
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")


def add_moved(moved, track, event):
    """The bytes of a copy or message count once: in the tracks of the links."""
    if event.categories[0] in ("copy", "message") and not track.startswith("stream "):
        details = {item.name: item for item in event.debug_annotations}
        moved[track] = moved.get(track, 0) + details["bytes"].uint_value


main(sys.argv[1])
