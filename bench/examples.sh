#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the examples with the library that bench/pack_gpu.sh put into .gpu/ and this machine's CUDA toolkit, runs each
# twice, first with an empty cache and then with what that left, and writes their tables to one Markdown file.
#
#   bench/examples.sh [FILE]      FILE: bench-out/examples.md unless named
#
# EXAMPLES names another list than the one below, a program and its matrix per line; PROGRAMS a folder where they are
# built already; CUDA the toolkit (/usr/local/cuda). EXAMPLE_SECONDS (60) limits each run. The exit status is 1 when a
# program could not be built, failed, or found its answer wrong.
set -uo pipefail
cd "$(dirname "$0")/.."
file=${1:-bench-out/examples.md}
cuda=${CUDA:-/usr/local/cuda}
programs=${PROGRAMS:-$PWD/.gpu/examples}
mkdir -p "$(dirname "$file")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# Real matrices are there when pack_gpu.sh found them.
list_examples() {
  if [ -n "${EXAMPLES:-}" ]; then cat "$EXAMPLES"; return; fi
  cat <<'LIST'
minimal elasticity:32
conjugate_gradient elasticity:48
conjugate_gradient elasticity:80
conjugate_gradient G2_circuit.mtx
bicgstab convection:128
bicgstab convection:200
bicgstab wang4.mtx
pagerank web:18
pagerank web:22
pagerank soc-Epinions1_und.mtx
time_stepping diffusion:96
time_stepping diffusion:160
graph_loop diffusion:24
graph_loop diffusion:40
LIST
}

build() {
  local source
  mkdir -p "$programs"
  for source in examples/*.c; do
    cc -std=c11 -O2 -Wall -Wextra -Werror -Iinclude -isystem "$cuda/include" "$source" examples/common/*.c \
      -o "$programs/$(basename "$source" .c)" .gpu/libcbgen.so.0.1 -Wl,-rpath,"$PWD/.gpu" -Wl,-rpath-link,.gpu/lib \
      -L"$cuda/lib64" -Wl,-rpath,"$cuda/lib64" -lcusparse -lcublas -lcudart -lm || return 1
  done
}

# run TITLE COMMAND…: its output goes to the file. 0 when the command says that all is well.
run() {
  local title=$1 status
  shift
  timeout -k 5 "${EXAMPLE_SECONDS:-60}" "$@" >"$work/said" 2>&1 </dev/null
  status=$?
  { sed "s/^### \(.*\)/### \1, $title/" "$work/said"; echo; } >>"$file"
  [ $status = 0 ] && return
  failed=1
  echo "$title: '$*' ended with status $status" | tee -a "$file"
  tail -5 "$work/said"
}

# Both runs of one example, with a cache of its own.
run_twice() {
  local cache
  cache=$(mktemp -d "$work/cache.XXXX")
  CBGEN_CACHE_DIR=$cache run "first run, cache empty" "$@"
  CBGEN_CACHE_DIR=$cache run "second run" "$@"
}

[ -n "${PROGRAMS:-}" ] || [ -d .gpu/lib ] || tar -C .gpu -xJf .gpu/lib.tar.xz || exit 1
[ -n "${PROGRAMS:-}" ] || build || { echo "the examples could not be built" >&2; exit 1; }
{
  echo "# The examples against cuSPARSE"
  echo
  echo "Written by bench/examples.sh; examples/README.md says how to read the tables. Times are of one process each: CUDA's"
  echo "own start comes before them, NVRTC's loading is in the first run's set-up."
  echo
  ! command -v nvidia-smi >/dev/null || nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sed 's/$/\n/'
} >"$file"
while read -r program matrix; do
  case $matrix in
    *.mtx)
      [ -e ".gpu/examples-matrices/$matrix.gz" ] || { echo "left out, not packed: $matrix"; continue; }
      gzip -dc ".gpu/examples-matrices/$matrix.gz" >"$work/$matrix"
      matrix=$work/$matrix ;;
  esac
  run_twice "$programs/$program" "$matrix"
done < <(list_examples)

python=examples/python/conjugate_gradient.py
if [ ! -e "$python" ] || [ -n "${PROGRAMS:-}" ]; then
  :
elif python3 -c 'import cupy, cupyx.scipy.sparse' 2>/dev/null; then
  PYTHONPATH=$PWD/python/src CBGEN_LIBRARY=$PWD/.gpu/libcbgen.so.0.1 run_twice python3 "$python"
else
  echo "left out: $python, for want of CuPy" | tee -a "$file"
fi
grep -c '^### ' "$file" | sed 's/$/ tables/'
grep -h 'FAILED$' "$file"
exit $failed
