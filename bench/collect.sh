#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Joins what one or several calls of bench/gpu.sh measured, and prints the figures for bench/results/README.md.
#
#   bench/collect.sh FOLDER CALL…      FOLDER: bench/results/DAY-GPU; CALL: a folder that was $OUT of a call, or an archive
set -euo pipefail
[ $# -ge 2 ] || { sed -n '3,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
scripts=$(dirname "$0") results=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
for call in "$@"; do
  number=$((number + 1))
  mkdir "$work/$number"
  if [ -d "$call" ]; then cp -r "$call/." "$work/$number"; else tar -C "$work/$number" -xf "$call"; fi
done

mkdir -p "$results"
for name in bench bench32 fixed tune atomics; do
  cat "$work"/*/"$name.jsonl" >"$work/all" 2>/dev/null || true
  [ -s "$work/all" ] || continue
  python3 "$scripts/table.py" "$work/all" >"$results/$name.md"
  gzip -9nc "$work/all" >"$results/$name.jsonl.gz"
  [ "$name" != bench ] || python3 "$scripts/chart.py" "$work/all" >"$results/$name.svg"
  printf '\n== %s\n\n' "$name"
  python3 "$scripts/table.py" --summary "$work/all"
done
cat "$work"/*/recipes.jsonl >"$work/all" 2>/dev/null || true
if [ -s "$work/all" ]; then
  gzip -9nc "$work/all" >"$results/recipes.jsonl.gz"
  python3 "$scripts/table.py" --recipes "$results"/{bench,recipes}.jsonl.gz >"$results/recipes.md"
  tail -1 "$results/recipes.md"
fi
for name in device opponent summary; do
  cat "$work"/*/"$name.txt" >"$results/$name.txt"
done
