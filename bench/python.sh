#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python package on a GPU: what only a GPU can show (python/tests/gpu_check.py), then the examples, that of conjugate
# gradients twice, first with an empty cache and then with what that left. All of it goes to one Markdown file.
#
#   bench/python.sh [FILE]      FILE: bench-out/python.md unless named
#   CHECK_SECONDS=40            no check begins later than that
#
# Takes the library and the package's compiled part that bench/pack_gpu.sh put into .gpu/ (bench/gpu.sh unpacks it), unless
# CBGEN_LIBRARY and CBGEN_CALLS name others; PYTHON names the Python with NumPy, SciPy, CuPy and PyTorch (python3). The exit status is 1 when something failed.
set -uo pipefail
cd "$(dirname "$0")/.."
file=${1:-bench-out/python.md}
python=${PYTHON:-python3}
mkdir -p "$(dirname "$file")"
export CBGEN_LIBRARY=${CBGEN_LIBRARY:-$PWD/.gpu/libcbgen.so.0.1} PYTHONPATH=$PWD/python/src PYTHONUNBUFFERED=1
export PYTHONDONTWRITEBYTECODE=1 CBGEN_CALLS=${CBGEN_CALLS:-$PWD/.gpu/_calls.abi3.so}
CBGEN_CACHE_DIR=$(mktemp -d)
export CBGEN_CACHE_DIR
trap 'rm -rf "$CBGEN_CACHE_DIR"' EXIT
failed=0

# run TITLE COMMAND…
run() {
  local title=$1
  shift
  printf '\n## %s\n\n' "$title"
  timeout -k 5 "${PYTHON_SECONDS:-150}" "$@" 2>&1 || { echo "exit status $?"; failed=1; }
}

{
  run "Checks" "$python" python/tests/gpu_check.py --seconds="${CHECK_SECONDS:-40}"
  rm -rf "${CBGEN_CACHE_DIR:?}"/*
  for cache in "empty cache" "kept kernels"; do
    for matrix in blocks:32 blocks:64; do
      run "conjugate_gradient.py $matrix, $cache" "$python" examples/python/conjugate_gradient.py "$matrix"
    done
  done
  if "$python" -c "import torch" 2>/dev/null; then
    run "graph_network.py" "$python" examples/python/graph_network.py
  fi
  exit $failed
} | tee "$file"
exit "${PIPESTATUS[0]}"
