"""Reads metrics in Prometheus's text format by Prometheus's own parser: metrics.py FILE"""

import sys

from prometheus_client.parser import text_string_to_metric_families

COUNTERS = {"resident_copies", "resident_copied_bytes", "resident_launches", "resident_waits",
            "resident_wait_seconds", "resident_allocations", "resident_allocated_bytes",
            "resident_evictions", "resident_evicted_bytes"}
GAUGES = {"resident_live_arrays", "resident_memory_bytes", "resident_memory_peak_bytes"}


def main(path):
    with open(path, encoding="utf-8") as file:
        families = list(text_string_to_metric_families(file.read()))
    kinds = {kind: {family.name for family in families if family.type == kind}
             for kind in ("counter", "gauge")}
    assert kinds == {"counter": COUNTERS, "gauge": GAUGES}, kinds
    for family in families:
        assert family.documentation and family.samples, family
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), sample
            assert sample.value >= 0, sample
    values = {(sample.name, *sample.labels.values()): sample.value
              for family in families for sample in family.samples}
    assert values["resident_launches_total",] > 0, values
    assert values["resident_copied_bytes_total", "to_host"] > 0, values
    print(f"{len(values)} metrics in {len(families)} families, as Prometheus reads them")


main(sys.argv[1])
