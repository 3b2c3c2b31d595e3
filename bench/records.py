# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON lines of `cbgen bench --json`, for table.py and chart.py.

Files of older versions are read as well: this is the one place that knows what has been renamed since. The rest of
bench/ sees today's names.
"""
import gzip
import json

RENAMED = {"rivals": "baselines", "best_rival": "best_baseline", "rival_types": "baseline_types",
           "no_rivals": "no_baselines"}
RENAMED_IN_BASELINES = {"preprocess_ms": "prepare_ms"}  # before SpMVOp there was preprocessing alone


def renamed(record, names):
    return {names.get(key, key): value for key, value in record.items()}


def modern(record):
    record = renamed(record, RENAMED)
    if "baselines" in record:  # not in those of --sweep
        record["baselines"] = [renamed(baseline, RENAMED_IN_BASELINES) for baseline in record["baselines"]]
    return record


def read(path):
    """The records of a file, one per matrix. A name that ends in .gz is unpacked. Lines that were cut off are left out."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
        return [modern(json.loads(line)) for line in file if line.startswith("{") and line.rstrip().endswith("}")]
