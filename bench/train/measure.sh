#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Times every recipe of every matrix of matrices.txt: the data that train.py learns from. For a GPU machine that cannot
# build cbgen, with what bench/pack_gpu.sh put into .gpu/; ends with a short table.
#
#   here:  mkdir -p build/small && find CORPUS CORPUS2 -name '*.mtx.zst' -size -1900k -exec cp -n {} build/small \;
#          CUSPARSE= bench/pack_gpu.sh build/small 58        (.gpu/ must travel; what does not fit is left out)
#   there: bench/train/measure.sh [TYPES]                    f64,f32 unless types are named; five minutes
#   here:  what came back into bench/train/data/, then train.py
#
# Writes candidates.jsonl.gz and measure.txt to $OUT, or ./bench-out. SECONDS_LEFT (270): after these no further matrix
# is begun. PROCESSES: that plan and compile side by side (all cores but one). LIST: another list. GPUS (1): of several, each
# times all of it; what the second one found comes as again-candidates.jsonl.gz.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-bench-out}
list=${LIST:-bench/train/matrices.txt}
types=${1:-f64,f32}
mkdir -p "$out"
out=$(realpath "$out")
. bench/train/unpack.sh
work=$(mktemp -d)
started=$SECONDS
# the fastest of what lies on a local disk or in memory: results are written a line at a time
OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive timeout -k 5 $((${SECONDS_LEFT:-270} + 100)) .gpu/bench_candidates "$list" \
  "$work/candidates.jsonl" --folders=.gpu/matrices:tests/data/corpus --types="$types" \
  --processes="${PROCESSES:-$(($(nproc) > 2 ? $(nproc) - 1 : 1))}" --seconds="${SECONDS_LEFT:-270}" --gpus="${GPUS:-1}" --repetitions=4 2>"$work/said"
{
  echo "exit status $?, $((SECONDS - started)) s; $(grep -c 'left out' "$work/said") matrices left out; $(grep -vc 'left out' "$work/said") other messages"
  grep -v 'left out' "$work/said" | sort | uniq -c | sort -rn | head -8 | cut -c1-200
  python3 bench/train/measured.py "$work/candidates.jsonl"
} 2>&1 | tee "$out/measure.txt"
gzip -9c "$work/candidates.jsonl" >"$out/candidates.jsonl.gz"
[ ! -e "$work/candidates.jsonl.1" ] || gzip -9c "$work/candidates.jsonl.1" >"$out/again-candidates.jsonl.gz"
rm -rf "$work"
