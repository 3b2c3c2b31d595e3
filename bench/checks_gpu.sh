#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What watches over kernels, on a GPU: right kernels pass CBGEN_CHECK, edited ones are found by it, and `run` and `bench`
# take a kernel.cu. Ends with a short table; the exit status is 1 when something is not as it should be.
#
#   bench/checks_gpu.sh BUILD [MATRIX…]      BUILD: a folder with cbgen and bench_warm_start; about a minute
set -uo pipefail
build=$(realpath "$1") && shift
matrices=("$@")
[ ${#matrices[@]} -gt 0 ] || matrices=(generate:stencil7,n=40 generate:fe3,n=12 generate:rmat,scale=14 generate:long_row)
cbgen=$(find "$build" -name cbgen -type f -perm -u+x | head -1)
warm=$(find "$build" -name bench_warm_start -type f -perm -u+x | head -1)
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
rows=${ROWS:-4000} scale=${SCALE:-14} # smaller ones for a try without a GPU
failures=0
table=$folder/table
export CBGEN_LOG=info

row() { # NAME EXPECTED LOG: whether the log has the expected words
  local state=ok
  grep -q -- "$2" "$3" || { state=FAILED && failures=$((failures + 1)) && tail -3 "$3"; }
  printf '%-44s %s\n' "$1" "$state" >>"$table"
}

for matrix in "${matrices[@]}"; do
  for check in 1 bounds; do
    CBGEN_CHECK=$check timeout 120 "$warm" --repeats 1 "$matrix" >"$folder/log" 2>&1
    echo "status $?" >>"$folder/log"
    row "$matrix, CBGEN_CHECK=$check" "^status 0" "$folder/log"
    grep -q "CBGEN_CHECK: \(line\|product\)" "$folder/log" && row "  finds nothing" "impossible" "$folder/log"
  done
done

# An edited kernel: ROW EDIT CHECK WORDS
edited() {
  local kernels=$folder/kernels
  rm -rf "$kernels" && mkdir "$kernels"
  CBGEN_OPTIONS=recipe=sell,fuse=off CBGEN_DUMP=$kernels timeout 60 "$warm" --repeats 1 generate:band,n=$rows,per_row=9,half=50 >/dev/null 2>&1
  sed -i "$2" "$kernels"/*.cu
  CBGEN_OPTIONS=recipe=sell,fuse=off CBGEN_OVERRIDE=$kernels CBGEN_CHECK=$3 timeout 60 "$warm" --repeats 1 \
    generate:band,n=$rows,per_row=9,half=50 >"$folder/log" 2>&1
  row "$1" "$4" "$folder/log"
}
edited "a column beyond the last" 's/load_x(vectors, columns\[i\])/load_x(vectors, columns[i] + '"$rows"')/' bounds \
  "CBGEN_CHECK: line [0-9]* of the kernel: index [0-9]* of 'x', which has $rows"
edited "a row that is doubled" 's/product(vectors.alpha, sum)/product(vectors.alpha, row == 77 ? sum + sum : sum)/' 1 \
  "CBGEN_CHECK: product [0-9]*: row 77 is "

for form in ax add axpby; do
  "$cbgen" generate:rmat,scale=$scale --form=$form -o "$folder/k.cu" >/dev/null 2>&1
  "$cbgen" run "$folder/k.cu" >"$folder/log" 2>&1
  row "run kernel.cu, form $form" "check     right" "$folder/log"
done
"$cbgen" bench "$folder/k.cu" >"$folder/log" 2>&1
row "bench kernel.cu" "brings no matrix" "$folder/log"
grep "time " "$folder/log"
cat "$table"
exit $((failures > 0))
