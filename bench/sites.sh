#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a site relies on, on a GPU: a kernel that was made from the GPU's description alone is found there without NVRTC and
# families; processes that start together compile once; the example in C++ runs. Needs what bench/pack_gpu.sh put into
# .gpu/, a C++ compiler and CUDA's run-time library.
#
#   bench/sites.sh [FILE]      FILE: bench-out/sites.txt unless named; the exit status is 1 when something is not so
#
# CBGEN and HEAT name the tool and the built example instead; CUDA the toolkit (/usr/local/cuda); PROCESSES (8); N, the
# side of the plate (256).
set -uo pipefail
cd "$(dirname "$0")/.."
file=${1:-bench-out/sites.txt}
cuda=${CUDA:-/usr/local/cuda}
cbgen=${CBGEN:-$PWD/.gpu/cbgen}
heat=${HEAT:-$PWD/.gpu/heat}
n=${N:-256}
mkdir -p "$(dirname "$file")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# check WHAT COMMAND…: says whether it holds.
check() {
  local what=$1
  shift
  if "$@"; then echo "passed: $what"; else echo "FAILED: $what"; failed=1; fi
}

all() {
  [ -n "${CBGEN:-}" ] || [ -d .gpu/lib ] || tar -C .gpu -xJf .gpu/lib.tar.xz || return 1
  [ -n "${HEAT:-}" ] || c++ -std=c++17 -O2 -Wall -Wextra -Werror -Iinclude -isystem "$cuda/include" examples/cpp/heat.cpp \
    -o "$heat" .gpu/libcbgen.so.0.1 -Wl,-rpath,"$PWD/.gpu" -Wl,-rpath-link,.gpu/lib -L"$cuda/lib64" \
    -Wl,-rpath,"$cuda/lib64" -lcudart || { echo "the example could not be built"; return 1; }

  echo "== a kernel from a description"
  "$cbgen" cache gpu >"$work/gpu.json" || return 1
  cat "$work/gpu.json"
  start=$(date +%s%N)
  CBGEN_CACHE_DIR=$work/site CBGEN_LIBCUDA=/nowhere "$cbgen" cache fill "generate:stencil5,n=$n" --gpu="$work/gpu.json" || return 1
  echo "filled in $((($(date +%s%N) - start) / 1000000)) ms"
  CBGEN_CACHE_DIR=$work/site "$cbgen" cache export "$work/site.tar.gz" || return 1
  CBGEN_CACHE_DIR=$work/elsewhere "$cbgen" cache import "$work/site.tar.gz" || return 1
  CBGEN_CACHE_DIR=$work/own CBGEN_CACHE_PATH=$work/elsewhere CBGEN_NVRTC=/nowhere CBGEN_FAMILIES= CBGEN_LOG=info \
    "$heat" "$n" >"$work/said" 2>&1
  cat "$work/said"
  check "the product is right" grep -q ': passed$' "$work/said"
  check "the kernel was found without NVRTC" grep -q 'cache: hit' "$work/said"

  echo "== ${PROCESSES:-8} processes at once"
  processes=()
  for i in $(seq "${PROCESSES:-8}"); do
    CBGEN_CACHE_DIR=$work/crowd CBGEN_OPTIONS=recipe=fill CBGEN_LOG=info "$heat" "$n" >"$work/process-$i" 2>&1 &
    processes+=($!)
  done
  for process in "${processes[@]}"; do wait "$process"; done
  grep -h 'of set-up' "$work"/process-* | sort -n
  check "all products are right" [ "$(grep -l ': passed$' "$work"/process-* | wc -l)" = "${PROCESSES:-8}" ]
  check "one of them made the kernel" [ "$(grep -h 'cache: stored' "$work"/process-* | wc -l)" = 1 ]
  check "the others found it" [ "$(grep -l 'cache: hit' "$work"/process-* | wc -l)" = $((${PROCESSES:-8} - 1)) ]

  echo "== no directory that can be written"
  for i in 1 2; do
    CBGEN_CACHE_DIR=/dev/null/none CBGEN_CACHE_MEMORY=$work CBGEN_OPTIONS=recipe=fill CBGEN_LOG=info "$heat" "$n" >"$work/memory-$i" 2>&1
  done
  check "the second process finds the kernel in memory" grep -q 'cache: hit' "$work/memory-2"
  return $failed
}

all 2>&1 | tee "$file"
