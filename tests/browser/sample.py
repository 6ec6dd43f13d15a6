"""Writes a sample audit document: python3 sample.py COUNT [OPTION...] > FILE

The documents are the same in every run. --gpu leaves out the times that a GPU does not give, with
--ranks there are messages to other processes, --hostile has hostile names, --empty nothing.
"""

import json
import random
import sys

HOSTILE = ["<script>window.pwned=1</script>\"'&\u202e"
           "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
           "</script><img src=x onerror=window.pwned=2>", "", "line\nbreak\u0000\u0007",
           "very long " * 2000, "__proto__"]
PLAIN = ["photo", "blurred", "weights", "histogram", "edges", "gradient"]
KERNELS = ["blur", "sobel", "histogram_256", "normalise", "matrix_multiply"]
BYTES = [3_145_728, 3_145_728, 262_144, 1_024, 786_432, 262_144]


class Sample:
    def __init__(self, names, gpu):
        self.random = random.Random(7)
        self.names, self.gpu = names, gpu
        self.clock, self.records, self.sites, self.launch = 2_000, [], {}, 0
        self.free = {}

    def times(self, device, stream, length):
        """Queued now; runs when the stream is free."""
        queued = self.clock
        self.clock += self.random.randint(300, 4_000)
        if self.gpu and device.startswith("cuda"):
            return queued, None, None
        started = max(queued + 400, self.free.get((device, stream), 0))
        self.free[device, stream] = started + length
        return queued, started, started + length

    def copy(self, array, direction, device, stream, cause, launch=None, source=None):
        size = BYTES[array]
        queued, started, finished = self.times(device, stream, size // 100 + 900)
        site = f"src/main.rs:{20 + array * 9 + len(direction)}:{9 + array}"
        stale = None if array == 2 else f"src/main.rs:{18 + array * 9}:{11}"
        self.records.append({
            "kind": "copy", "queued_ns": queued, "started_ns": started, "finished_ns": finished,
            "thread": self.thread(), "device": device, "stream": stream, "site": site,
            "array": array, "name": self.names[array], "direction": direction, "source": source,
            "bytes": size, "padding": 512 if array == 4 else 0, "cause": cause,
            "stale_since": stale, "launch": launch, "use_number": len(self.records),
            "changed_bytes": size // 2 if array == 3 else None, "host_ns": 700, "is_pageable": True,
            "contents_hash": None})
        self.add_site(self.records[-1])

    def add_site(self, copy):
        key = tuple(copy[k] for k in ("site", "name", "direction", "device", "source", "cause"))
        site = self.sites.setdefault(key, {
            "site": key[0], "array": key[1], "direction": key[2], "device": key[3],
            "source": key[4], "cause": key[5], "count": 0, "bytes": 0,
            "stale_since": copy["stale_since"], "never_there": copy["stale_since"] is None})
        site["count"] += 1
        site["bytes"] += copy["bytes"]

    def thread(self):
        return "main" if self.clock % 7 else "loader"

    def step(self):
        """One launch with the copies it needs, sometimes a read on the host and a wait."""
        device = self.random.choice(["cpu:0", "cpu:0", "cuda:0", "cuda:1"])
        stream = self.random.choice([1, 1, 2])
        self.launch += 1
        array = self.random.randrange(len(self.names))
        if self.random.random() < 0.6:
            self.copy(array, "to_device", device, stream, "launch", self.launch)
        if self.random.random() < 0.15:
            self.copy(array, "between_devices", "cuda:1", stream, "launch", self.launch, "cuda:0")
        self.add_launch(device, stream, array)
        if self.random.random() < 0.1:
            self.access(array, self.random.choice([None, device]))
        if self.random.random() < 0.3:
            self.copy(array, "to_host", device, stream, "host")
            self.wait(device, stream)

    def add_launch(self, device, stream, array):
        queued, started, finished = self.times(device, stream, self.random.randint(2_000, 60_000))
        other = (array + 1) % len(self.names)
        self.records.append({
            "kind": "launch", "id": self.launch, "called_ns": max(0, queued - 700),
            "queued_ns": queued, "started_ns": started,
            "finished_ns": finished, "thread": self.thread(), "device": device, "stream": stream,
            "site": f"src/main.rs:{60 + array}:5", "name": KERNELS[array % len(KERNELS)],
            "arguments": [{"array": array, "access": "in"}, {"array": other, "access": "in_out"}]})

    def wait(self, device, stream):
        until = max(self.free.get((device, stream), 0), self.clock + 2_000)
        self.records.append({"kind": "wait", "queued_ns": self.clock, "finished_ns": until,
                             "thread": "main", "device": device, "stream": stream,
                             "site": "src/main.rs:70:9", "reason": "host_function"})
        self.clock = until + 500

    def access(self, array, device):
        self.records.append({"kind": "access", "queued_ns": self.clock, "thread": "main",
                             "device": device, "array": array, "access": "in", "is_whole": True,
                             "site": f"src/main.rs:{90 + array}:7", "use_number": 0})
        self.clock += 300

    def message(self, array, direction, peer):
        """A message between processes, for which the thread waited if it came from one."""
        waited = 0 if direction == "sent" else 700
        self.clock += 900
        self.records.append({
            "kind": "message", "queued_ns": self.clock, "waited_ns": waited, "thread": "main",
            "device": "host", "site": f"src/main.rs:{110 + array}:3", "name": self.names[array],
            "direction": direction, "peer": peer, "bytes": 4096, "cause": "mpi"})
        key = (array, direction, peer)
        site = self.sites.setdefault(key, {
            "site": self.records[-1]["site"], "array": self.names[array], "direction": direction,
            "device": "host", "source": None, "cause": "mpi", "count": 0, "bytes": 0,
            "stale_since": None, "never_there": False, "peer": peer})
        site["count"] += 1
        site["bytes"] += 4096

    def exchange(self):
        for peer in (0, 2):
            self.message(peer, "sent", peer)
            self.message(peer + 1, "received", peer)
        self.records.append({"kind": "barrier", "queued_ns": self.clock + 500, "waited_ns": 400,
                             "thread": "main", "site": "src/main.rs:120:3", "number": 0})
        self.clock += 900

    def allocate(self, array):
        self.records.append({"kind": "allocation", "queued_ns": self.clock, "thread": "main",
                             "device": "cuda:0", "bytes": BYTES[array], "array": array})
        self.clock += 900


def total(records, direction=None):
    chosen = [r for r in records if r["kind"] == "copy" and r["direction"] == direction]
    return {"count": len(chosen), "bytes": sum(r["bytes"] for r in chosen)}


def findings(sites):
    largest = sorted(sites, key=lambda site: -site["bytes"])[:2]
    words = [("round_trip", "goes to the host and comes back unchanged",
              "Read it on the device, or take it by `host()` after the loop, not by `host_mut()`."),
             ("repeated_copy", "is copied in every turn of the loop although it did not change",
              "Copy it once before the loop.")]
    return [{"kind": kind, "message": f"{site['array'][:80]} {text}, {site['count']} times, at "
             f"{site['site']}.", "change": change, "sites": [site["site"]], "array": site["array"],
             "count": site["count"] // 2, "bytes": site["bytes"] // 2,
             "nanoseconds": None if n else 48_000}
            for n, (site, (kind, text, change)) in enumerate(zip(largest, words))]


def messages(sites):
    """The totals of messages, and which process it is."""
    def flow(direction):
        chosen = [s for s in sites if s["direction"] == direction]
        return {"count": sum(s["count"] for s in chosen), "bytes": sum(s["bytes"] for s in chosen)}
    return {"sent": flow("sent"), "received": flow("received"), "rank": 1, "ranks": 3,
            "peer_waits": {"count": 9, "nanoseconds": 5_000}, "host": "node<1>"}


def memory(records, names):
    """What was in use: of each device the sum of its allocations, so that the end is the peak."""
    uses = {}
    for record in (r for r in records if r["kind"] == "allocation"):
        held = uses.setdefault(record["device"], [])
        held.append(record)

    def moment(held, refused=None):
        holders = [{"array": names[r["array"]], "site": r.get("site"), "count": 1, "bytes": r["bytes"]}
                   for r in sorted(held, key=lambda r: -r["bytes"])]
        return {"at_ns": held[-1]["queued_ns"], "bytes": sum(r["bytes"] for r in held),
                "refused": refused, "holders": holders}

    def use(device, held):
        sums = [sum(r["bytes"] for r in held[:n + 1]) for n in range(len(held))]
        series = [{"at_ns": r["queued_ns"], "bytes": b} for r, b in zip(held, sums)]
        return {"device": device, "before": 0, "in_use": sums[-1] // 2, "peak": moment(held),
                "out_of_memory": moment(held[:1], 4096), "series": [{"at_ns": 0, "bytes": 0}] + series}
    return [use(device, held) for device, held in uses.items()]


def document(count, names, gpu, ranks):
    sample = Sample(names, gpu)
    for array in range(len(names) if count else 0):
        sample.allocate(array)
    while len(sample.records) < count:
        sample.step()
        if ranks and len(sample.records) < count - 20:
            sample.exchange()
    records, sites = sample.records[:count], list(sample.sites.values())
    ends = [r.get("finished_ns") or r["queued_ns"] for r in records]
    waits = [r["finished_ns"] - r["queued_ns"] for r in records if r["kind"] == "wait"]
    moved = {d: total(records, d) for d in ("to_device", "to_host", "between_devices")}
    allocations = [r["bytes"] for r in records if r["kind"] == "allocation"]
    return {"version": 1, **moved,
            "avoided": {"count": count // 4, "bytes": count * 200_000},
            "conservative": {"count": count, "bytes": count * 800_000},
            "padding": {"count": count // 30, "bytes": count // 30 * 512},
            "launches": sum(r["kind"] == "launch" for r in records),
            "waits": {"count": len(waits), "nanoseconds": sum(waits)},
            "allocations": {"count": len(allocations), "bytes": sum(allocations)},
            "evictions": {"count": 0, "bytes": 0}, "duration_ns": max(ends, default=1_000_000),
            "sites": sites, "records": records,
            "arrays": [{"id": n, "name": name, "element": "f32", "shape": [BYTES[n] // 4096, 1024]}
                       for n, name in enumerate(names)] if count else [],
            "records_forgotten": 12_345 if count >= 100_000 else 0, "findings": findings(sites),
            "checked": [{"kernel": name, "launches": 3, "accesses": 70 * n, "errors": n % 2, "notes": n}
                        for n, name in enumerate(names)] if gpu else None,
            "memory": memory(records, names), **(messages(sites) if ranks else {})}


def main(arguments):
    count = 0 if "--empty" in arguments else int(arguments[0])
    names = HOSTILE if "--hostile" in arguments else PLAIN
    sample = document(count, names, "--gpu" in arguments, "--ranks" in arguments)
    json.dump(sample, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main(sys.argv[1:])
