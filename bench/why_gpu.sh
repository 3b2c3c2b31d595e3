#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `cbgen why` on a GPU: a matrix with a planted slow row, ordinary ones, and what the clocks cost; a table comes last.
#
#   bench/why_gpu.sh      with the tool that bench/pack_gpu.sh put into .gpu/, or $CBGEN
#
# Reports and JSON go to $OUT, or ./bench-out. SECONDS_EACH (60) limits each call.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-bench-out}
cbgen=${CBGEN:-$PWD/.gpu/cbgen}
mkdir -p "$out"
[ ! -d .gpu/lib ] || export LD_LIBRARY_PATH=$PWD/.gpu/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

slow=generate:long_row,rows=200000,cols=200000,per_row=8,long_rows=1,long_length=5000
cases=(
  "slow-row $slow --recipe=sell --sell-vary=off --sell-sort=off --sell-lanes=1"
  "slow-row-auto $slow"
  "fe3 generate:fe3,n=40"
  "stencil27 generate:stencil27,n=60"
  "rmat generate:rmat,scale=18"
  "small generate:stencil5,n=100"
)
for case in "${cases[@]}"; do
  read -r name arguments <<<"$case"
  # shellcheck disable=SC2086 # options are words
  timeout "${SECONDS_EACH:-60}" "$cbgen" why $arguments --json >"$out/why-$name.json" 2>"$out/why-$name.err" ||
    { echo "$name: $(tail -1 "$out/why-$name.err")" && rm -f "$out/why-$name.json"; }
done
# shellcheck disable=SC2086
timeout "${SECONDS_EACH:-60}" "$cbgen" why ${cases[0]#* } --row=100000 | tee "$out/why-row.txt"

python3 - "$out"/why-*.json <<'PYTHON'
import json, os, sys
print("\n%-14s %9s %9s %7s %9s | %-44s %9s %9s %-7s" % ("matrix", "plain us", "clock us", "costs", "predicted",
      "slowest thread block: number, longest row", "took us", "predicted", "bound"))
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    name, measured, block = os.path.basename(path)[4:-5], document["measured"], document["blocks"][0]
    if not measured:
        print("%-14s not measured: %s" % (name, document["not_measured"]))
        continue
    plain, clocked = measured["product_us"], measured["product_with_clocks_us"]
    longest = block.get("longest", {"row": "-", "nonzeros": "-"})
    print("%-14s %9.2f %9.2f %+6.1f%% %9.2f | %-44s %9.2f %9.2f %-7s" % (
        name, plain, clocked, 100 * (clocked / plain - 1), document["predicted"]["ns"] / 1e3,
        "%d (row %s: %s of %d nonzeros)" % (block["block"], longest["row"], longest["nonzeros"], block["nonzeros"]),
        block["measured_us"], block["predicted"]["ns"] / 1e3, block["predicted"]["bound"]))
    for launch in document["launches"]:
        print("%-14s launch %d: %d thread blocks, %d at a time (%d expected), %.2f us, tail %.2f us; registers %d, with clocks %d; "
              "a cycle is %.4f ns; median block %s us" % (
                  "", launch["launch"], launch["blocks"], launch["at_once"], launch["at_once_predicted"], launch["us"],
                  launch["tail_us"], measured["registers"], measured["registers_with_clocks"], measured["cycle_ns"],
                  "%.2f" % document["median"]["measured_us"] if document["median"] else "-"))
PYTHON
