"""Reads a trace by the schema that Perfetto publishes (the package `perfetto` of the Python package
index has it), and checks that each event belongs to a described track and each slice ends."""

import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def main(path):
    trace = Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    # What is written under another number than the schema's would be an unknown field.
    assert Trace.FromString(trace.SerializeToString()) == trace
    tracks, open_slices, flows, times = {}, {}, {}, []
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.name and descriptor.uuid
            assert not descriptor.HasField("parent_uuid") or descriptor.parent_uuid in tracks
            tracks[descriptor.uuid] = descriptor.name
            continue
        event = packet.track_event
        assert packet.HasField("timestamp") and event.track_uuid in tracks, packet
        begins = {TrackEvent.TYPE_SLICE_BEGIN: 1, TrackEvent.TYPE_SLICE_END: -1}
        change = begins.get(event.type, 0)
        assert change or event.type == TrackEvent.TYPE_INSTANT, event
        open_slices[event.track_uuid] = open_slices.get(event.track_uuid, 0) + change
        assert open_slices[event.track_uuid] in (0, 1)
        if change >= 0:
            assert event.name and event.categories, event
            assert all(item.name for item in event.debug_annotations)
            times.append(packet.timestamp)
        for flow in event.flow_ids:
            flows[flow] = flows.get(flow, 0) + 1
    assert not any(open_slices.values()) and times
    assert flows and all(ends >= 2 for ends in flows.values()), flows
    print(f"{len(times)} events on {len(tracks)} tracks, {len(flows)} launches with arrows: "
          f"{', '.join(sorted(set(tracks.values())))}")


main(sys.argv[1])
