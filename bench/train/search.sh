#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches the best shares of hot columns and rows for the matrices of shares.txt: labels that shares.py learns from. For a GPU
# machine that cannot build cbgen, with what bench/pack_gpu.sh put into .gpu/, and with scikit-learn; ends with a short table.
#
#   here:  mkdir -p build/small && find CORPUS CORPUS2 -name '*.mtx.zst' -size -1900k -exec cp -n {} build/small \;
#          CUSPARSE= bench/pack_gpu.sh build/small 58        (.gpu/ must travel; what does not fit is left out)
#   there: bench/train/search.sh [TYPES]                     f64,f32 unless types are named; five minutes
#   here:  what came back into bench/train/data/, then shares.py
#
# Writes shares.jsonl.gz and shares.txt to $OUT, or ./bench-out. SECONDS_LEFT (250): after these no further product is begun.
# PROCESSES: that plan and compile side by side (all cores but one). LIST: another list. FOLDERS: where its files lie. POINTS: a file of pairs to time instead,
# as shares.py --chosen writes it.
set -uo pipefail
cd "$(dirname "$0")/../.."
out=${OUT:-bench-out}
mkdir -p "$out"
out=$(realpath "$out")
python3 -c 'import sklearn, scipy; print("scikit-learn", sklearn.__version__, "scipy", scipy.__version__)' || exit 1
. bench/train/unpack.sh
work=$(mktemp -d)
started=$SECONDS
OMP_WAIT_POLICY=passive timeout -k 5 $((${SECONDS_LEFT:-250} + 25)) python3 bench/train/search.py .gpu/bench_shares "${LIST:-bench/train/shares.txt}" \
  "$work/shares.jsonl" --folders="${FOLDERS:-.gpu/matrices:tests/data/corpus}" --types="${1:-f64,f32}" ${POINTS:+--points="$POINTS"} \
  --processes="${PROCESSES:-$(($(nproc) > 2 ? $(nproc) - 1 : 1))}" --seconds="${SECONDS_LEFT:-250}" 2>"$work/said"
{
  echo "exit status $?, $((SECONDS - started)) s; $(grep -c 'left out' "$work/said") matrices left out; $(grep -vc 'left out' "$work/said") other messages"
  grep -v 'left out' "$work/said" | sort | uniq -c | sort -rn | head -8 | cut -c1-200
  python3 bench/train/shares.py --labels="$work/shares.jsonl"
} 2>&1 | tee "$out/shares.txt"
touch "$work/shares.jsonl"
gzip -9c "$work/shares.jsonl" >"$out/shares.jsonl.gz"
rm -rf "$work"
