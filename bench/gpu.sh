#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that needs a GPU, in one call, with the tool that bench/pack_gpu.sh put into .gpu/. Ends with a short table.
#
#   bench/gpu.sh [STEP…]      check bench sanitize sanitizesolve, unless steps are named; also: calibrate tune bench32 atomics recipes
#                             examples python pycalls pysolve setup warm coldstart update devpack solve lp heads complex petsc petscscaling api soak campaign ncu paper
#
#   check      small matrices of every form and type: compile, multiply, compare        check.txt
#              with the oracle, and some with the emulation bit by bit
#   bench      all matrices in double precision, every recipe, against cuSPARSE         bench.jsonl bench.md bench.svg
#   calibrate  the figures of the cost model, measured; later steps follow them   calibrate.txt MODEL.json
#   tune       all matrices with --tune=measure: what measuring brings         tune.jsonl tune.md
#   bench32    the same in single precision                                             bench32.jsonl bench32.md
#   fixed      the same with values that never change, and patterns of ones             fixed.jsonl fixed.md
#   atomics    the same with --atomics=on                                               atomics.jsonl atomics.md
#   recipes    all matrices with the recipes that no search tries (RECIPES names others)  recipes.jsonl
#   examples   the programs of examples/, against cuSPARSE                              examples.md
#   python     the Python package with CuPy, PyTorch, Numba; its example                python.md
#   pycalls    what a product costs the host from Python: CuPy, PyTorch (bench/python_calls.py)    pycalls.md pycalls.jsonl
#   pysolve    solvers from Python beside cupyx.scipy.sparse.linalg (bench/python_solvers.py), about 60 s    pysolve.md pysolve.jsonl
#   setup      set-up of the generated matrices by an ordinary search (bench plans all recipes)    setup.jsonl setup.md
#   warm       set-up, cold and from the cache, part by part; new values                warm.txt warm.jsonl
#   coldstart  first products: nothing in the cache, families that come with the library, both tiers, beside csr-alg1
#              (COLD_MATRICES: others)                                                   coldstart.txt coldstart.jsonl
#   update     new values by packing kernels of several shapes, beside a copy        update.txt
#   devpack    packing on the device beside the host's: the same bytes, on the corpus too; parts of set-up    devpack*.txt
#   many       several vectors at once beside cuSPARSE's SpMM: five shapes, MANY_VECTORS (8), MANY_OPTIONS more options;
#              MATRICES or MATRICES_MORE: others; manysweep: scattered columns with threads that share vectors, X by columns
#              laid out first or not, by merge, hot and patterns, about 90 s (SWEEP_MATRICES: others); manycorpus: the packed and the corpus, 8 and
#              4 vectors (CORPUS_VECTORS), then the ten slowest beside cuSPARSE by every recipe of MANY_RECIPES, about 140 s;
#              its parts have limits of MANY_SECONDS (50)                             many*.jsonl many*.md
#   symmetric  half of symmetric matrices stored, beside all of them and cuSPARSE, with thread blocks of several sizes; about
#              80 s (SYMMETRIC_MATRICES: others)                                      symmetric*.jsonl symmetric.md
#   lp         linear programs, an iteration beside its two products (LP_MATRICES: others)    lp.txt
#   solve      solvers as one kernel beside kernels one after the other, and cuSPARSE with cuBLAS (SOLVE_MATRICES: others; SOLVE_BLOCKS: numbers of
#              thread blocks)                                                    solve.txt solve.jsonl
#   heads      split values: products of whole and split ones and with heads, cg and cg-mixed; about 50 s (HEADS_MATRICES:
#              others)                                                           heads.txt
#   complex    complex matrices in both precisions beside cuSPARSE's complex products; about 80 s (COMPLEX_MATRICES:
#              others)                                                           complex-c128.jsonl complex-c64.jsonl complex.md
#   petsc      PETSc's programs with aijcbgen beside aijcusparse: MatMult, cg, cg in one kernel, cg with GAMG; needs a
#              PETSc that was packed (PETSC of bench/pack_gpu.sh); PETSC_MATRICES: others; PETSC_RANKS: "1 2 4",
#              with an MPI; PETSC_OPTIONS           petsc.md
#   petscscaling  weak and strong scaling of PETSc's cg on PETSC_RANKS ("1 2 4") GPUs, with an MPI that was packed (MPI of
#              bench/pack_gpu.sh) or is there; PETSC_OPTIONS: -use_gpu_aware_mpi 0, unless it is   petsc-scaling.md
#   api        libcbgen from outside (bench/api_check.c): plainly, then under compute-sanitizer    api*.txt
#   soak       the same for SOAK_SECONDS (120), with an eye on memory (bench/soak.c)    soak.txt
#   campaign   random matrices by the million, every row checked on the GPU (bench/campaign.c), for CAMPAIGN_SECONDS (480) at
#              most; CAMPAIGN_OPTIONS, as "--seed 2"                          campaign.txt campaign-failures.txt
#   sanitize   compute-sanitizer over products: memcheck, racecheck, initcheck          sanitize.txt
#   sanitizesolve  memcheck, racecheck, initcheck, synccheck over small solvers of every form and linear programs    sanitizesolve.txt
#   paper      the tables of the five papers on a few small stand-ins (bench/paper)     paper/
#   ncu        one matrix (NCU_MATRIX) under Nsight Compute, clocks left alone          ncu.txt
#
# Results go to $OUT, or ./bench-out. Each step has a time limit in seconds: CHECK_SECONDS (240), BENCH_SECONDS (330),
# EXAMPLES_SECONDS (180), PYTHON_SECONDS (150, for each of five runs), WARM_SECONDS (240), API_SECONDS (90, for each
# run), SANITIZE_SECONDS (140), NCU_SECONDS (60), PAPER_SECONDS (20, for each call of cbgen); what a limit cuts off is missing from the results, and said. MATRICES
# names a file with one matrix per line instead of the list below, MATRICES_MORE a folder whose files are measured instead,
# BENCH_OPTIONS more options of cbgen; WARM_SWEEP=1 tries all shapes of uploads in the step warm.
# No setting of the GPU is touched.
#
# Measured against: the cuSPARSE that CBGEN_CUSPARSE names, else the packed one, else the machine's; opponent.txt and every
# table say which.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${OUT:-bench-out}
cbgen=$PWD/.gpu/cbgen
mkdir -p "$out"
out=$(realpath "$out")
steps=${*:-check bench sanitize sanitizesolve}
summary=$out/summary.txt
: >"$summary"
export PATH=$PATH:/usr/local/cuda/bin

say() { printf '%s\n' "$*" | tee -a "$summary"; }

# Libraries of this machine go before those that were packed, where both are the compiler's own.
unpack() {
  local name
  for name in lib cusparse; do
    [ -d ".gpu/$name" ] || [ ! -e ".gpu/$name.tar.xz" ] || tar -C .gpu -xJf ".gpu/$name.tar.xz" || return 1
  done
  for name in libstdc++.so.6 libgcc_s.so.1 libgomp.so.1; do
    ldconfig -p | grep -q "$name" && rm -f ".gpu/lib/$name"
  done
  "$cbgen" --version
}

# What speed-ups are over. A packed library that does not open is a reason to say so, not to stop.
opponent() {
  local packed=$PWD/.gpu/cusparse/libcusparse.so.12
  [ -n "${CBGEN_CUSPARSE:-}" ] || [ ! -e "$packed" ] || export CBGEN_CUSPARSE=$packed
  "$cbgen" bench -q --json --repeat=1 generate:uniform,n=9,per_row=2 >"$out/opponent.json"
  if grep -q '"cusparse":null' "$out/opponent.json" && [ "${CBGEN_CUSPARSE:-}" = "$packed" ]; then
    say "the packed cuSPARSE does not open: $(sed 's/.*"no_baselines":"\([^"]*\).*/\1/' "$out/opponent.json")"
    unset CBGEN_CUSPARSE
    "$cbgen" bench -q --json --repeat=1 generate:uniform,n=9,per_row=2 >"$out/opponent.json"
  fi
  python3 bench/table.py --conditions "$out/opponent.json" | sed 's/\. .*/./' >"$out/opponent.txt"
  say "measured on $(cat "$out/opponent.txt")${CBGEN_CUSPARSE:+ Its file: ${CBGEN_CUSPARSE#"$PWD/"}}"
  rm -f "$out/opponent.json"
}

# Generated matrices of nine classes, small ones, and all that were packed or lie in the source tree.
list_matrices() {
  if [ -n "${MATRICES:-}" ]; then cat "$MATRICES"; return; fi
  if [ -n "${MATRICES_MORE:-}" ]; then ls -d "$MATRICES_MORE"/*; return; fi
  ls -d .gpu/matrices/* tests/data/corpus/*.mtx* 2>/dev/null
  cat <<'LIST'
generate:fe3,n=20
generate:fe3,n=80
generate:stencil7,n=220
generate:stencil27,n=140
generate:band,n=2000000,half=2000,per_row=32
generate:road,n=3000,keep=0.6
generate:uniform,n=2000000,per_row=16
generate:rmat,scale=20,edge_factor=16
generate:rmat,scale=22,edge_factor=16
LIST
}

small_matrices() {
  cat <<'LIST'
generate:random,rows=301,cols=283,density=0.05
generate:random,rows=5000,cols=4000,per_row=12
generate:dense,rows=130,cols=67
generate:dense_row,n=3001
generate:dense_column,n=2049
generate:long_row,rows=2000,per_row=4,long_rows=3,long_length=1900
generate:powerlaw,rows=3000,max=1500
generate:random_exact,blocks_r=9,block_nnz=33,cut_rows=1,cut_cols=3
generate:fe3,n=8
generate:rmat,scale=11,edge_factor=8
generate:hypersparse,rows=20000
generate:empty,rows=100,cols=50
LIST
}

# Every recipe as it is, then the options that change what a kernel's text consists of.
option_sets() {
  local recipe
  "$cbgen" help recipes | sed -nE 's/^  +([a-z][a-z0-9-]*) .*/\1/p' | while read -r recipe; do
    echo "--recipe=$recipe"
    echo "--recipe=$recipe --type=f32 --form=ax"
  done
  cat <<'LIST'
--form=add
--recipe=cb --aggregate=on --intra=off
--recipe=cb --aggregate=off --intra=on --form=ax
--recipe=cb --balance=heap
--recipe=cb --unit-budget=64
--recipe=cb --unit-budget=64 --form=add --type=f32
--recipe=cb --atomics=on --unit-budget=64
--recipe=cb --team=8
--recipe=dia --dia-fill=0
--recipe=dia --dia-fill=0 --form=add --type=f32
--recipe=merge --merge-piece=256 --merge-pad=off --form=add --type=f32
--recipe=sell-long --long-row=50
--recipe=sell --sell-vector=2
--recipe=sell --sell-vector=4 --sell-vary=on --type=f32
--recipe=hot --hot-columns=64
--recipe=phases --phase-columns=200 --phase-set=64 --phase-row=1
--recipe=phases --phase-columns=90 --phase-set=32 --phase-blocks=2 --phase-threads=256 --form=add --type=f32
--recipe=dia --dia-fill=0 --fuse=on
--recipe=sell-long --long-row=20 --fuse=on
--recipe=du --du-form=mma
--recipe=du --du-segment=3 --form=add --type=f32
--recipe=se --du-form=mma --form=ax
--recipe=hotcold --crux-cols=60 --crux-rows=40
--recipe=hotcold --crux-cols=60 --crux-rows=40 --crux-encoding=se --du-form=mma --du-segment=5
--type=f32-f64
--type=split-f64
--type=bf16-f32
--recipe=merge --type=f16-f32
--type=f16
--type=bf16 --form=add
--type=c128
--type=c64 --form=add
--type=c128 --recipe=merge
--type=c64 --recipe=dia --dia-fill=0 --conjugate=on
--recipe=hot --hot-columns=64 --hot-gather=on --type=f16
--recipe=dia --dia-fill=0 --type=bf16
--values=fixed
--recipe=merge --values=fixed
LIST
}

# job "TOOL COMMAND…": under TOOL of compute-sanitizer unless that is "-". Says "ok" or "FAILED", and what was said.
job() {
  local tool words command said=$work/$BASHPID
  read -r tool words <<<"$1"
  read -ra command <<<"$words"
  [ "$tool" = - ] || command=(compute-sanitizer --tool "$tool" --error-exitcode 99 "${command[@]}")
  if OMP_NUM_THREADS=2 timeout 100 "${command[@]}" >"$said" 2>&1 </dev/null; then
    echo "ok $1"
  elif grep -Eq 'use (another )?recipe|or lower ' "$said"; then # a recipe that is not for this matrix
    echo "ok $1 (refused)"
  else
    printf 'FAILED %s\n%s\n' "$1" "$(head -c 3000 "$said")"
  fi >"$said.done"
  rm -f "$said"
}
export -f job

# run_jobs NAME LIMIT <JOBS: eight at a time; failures, and what the limit cut off, go to NAME.txt, counts to the summary.
run_jobs() {
  local name=$1 limit=$2 all started=$SECONDS good bad
  work=$(mktemp -d)
  export work
  cat >"$work/jobs"
  all=$(wc -l <"$work/jobs")
  timeout "$limit" xargs -a "$work/jobs" -d '\n' -P 8 -n 1 bash -c 'job "$0"'
  cat "$work"/*.done >"$out/$name.all" 2>/dev/null
  good=$(grep -c '^ok ' "$out/$name.all")
  bad=$(grep -c '^FAILED ' "$out/$name.all")
  grep -v '^ok ' "$out/$name.all" >"$out/$name.txt"
  awk 'FNR == NR { sub(/^[^ ]* /, ""); sub(/ \(refused\)$/, ""); done[$0]; next } !($0 in done) { print "CUT OFF " $0 }' \
    "$out/$name.all" "$work/jobs" >>"$out/$name.txt"
  say "$name: $good of $all right, $bad failed$([ $((good + bad)) = "$all" ] || echo ", the others cut off after $((SECONDS - started)) s")"
  head -c 2000 "$out/$name.txt"
  rm -rf "$work" "$out/$name.all"
}

# Of the first matrices, every bit is compared with the emulation's, which takes seconds.
check() {
  local matrix options emulated=3
  command -v "${CXX:-c++}" >/dev/null || { say "check: no C++ compiler: no bits are compared with the emulation"; emulated=0; }
  while read -r matrix; do
    while read -r options; do echo "- .gpu/cbgen run -q $matrix $options$([ $emulated -le 0 ] || echo ' --emulate')"; done < <(option_sets)
    emulated=$((emulated - 1))
  done < <(small_matrices) | CBGEN_DEBUG=1 run_jobs check "$1"
}

# bench NAME LIMIT [OPTION…]
bench() {
  local name=$1 limit=$2
  shift 2
  list_matrices >"$out/matrices.txt"
  # shellcheck disable=SC2086
  timeout -k 5 "$limit" "$cbgen" bench -q --json "@$out/matrices.txt" "$@" ${BENCH_OPTIONS:-} \
    >"$out/$name.jsonl" 2>"$out/$name.err"
  local status=$?
  say "$name: $(wc -l <"$out/$name.jsonl") of $(wc -l <"$out/matrices.txt") matrices, exit status $status$([ $status != 124 ] || echo ' (cut off by the time limit)')"
  head -c 1500 "$out/$name.err"
  python3 bench/table.py "$out/$name.jsonl" >"$out/$name.md" || say "$name: the table failed"
  python3 bench/chart.py "$out/$name.jsonl" >"$out/$name.svg" || say "$name: the chart failed"
}

# recipes LIMIT: those that bench --candidates leaves out
sweep_recipes() {
  list_matrices >"$out/matrices.txt"
  timeout -k 5 "$1" "$cbgen" bench -q --json --repeat=3 "@$out/matrices.txt" \
    "--sweep=recipe=${RECIPES:-cb-paper,fill,runs,tile,tile-csr,tile-defer,hotcold,du,se}" \
    >"$out/recipes.jsonl" 2>"$out/recipes.err"
  local status=$?
  say "recipes: $(wc -l <"$out/recipes.jsonl") of $(wc -l <"$out/matrices.txt") matrices, exit status $status"
  head -c 1500 "$out/recipes.err"
}

# tune LIMIT
tune() {
  list_matrices >"$out/matrices.txt"
  # shellcheck disable=SC2086
  timeout -k 5 "$1" "$cbgen" bench -q --json --no-baselines --tune=measure "@$out/matrices.txt" ${BENCH_OPTIONS:-} \
    >"$out/tune.jsonl" 2>"$out/tune.err"
  local status=$?
  say "tune: $(wc -l <"$out/tune.jsonl") of $(wc -l <"$out/matrices.txt") matrices, exit status $status"
  head -c 1500 "$out/tune.err"
  python3 bench/table.py "$out/tune.jsonl" >"$out/tune.md" || say "tune: the table failed"
  sed -n '/^Loss of choosing/,$p' "$out/tune.md"
}

# The same matrices, and some of which only the pattern counts.
bench_fixed() {
  local list
  list=$(mktemp)
  { list_matrices
    [ -n "${MATRICES_MORE:-}" ] || cat <<'LIST'
generate:stencil7,n=220,values=ones
generate:stencil27,n=140,values=ones
generate:road,n=3000,keep=0.6,values=ones
generate:rmat,scale=20,edge_factor=16,values=ones
generate:rmat,scale=22,edge_factor=16,values=ones
LIST
  } >"$list"
  MATRICES=$list bench fixed "$1" --values=fixed
  rm -f "$list"
}

sanitize() {
  local tool matrix options
  command -v compute-sanitizer >/dev/null || { say "sanitize: compute-sanitizer is not installed"; return; }
  for tool in memcheck racecheck initcheck; do
    while read -r matrix; do
      for options in "" "--recipe=cb" "--recipe=cb --unit-budget=64" "--recipe=sell-long --long-row=20 --fuse=on" \
        "--recipe=phases --phase-columns=200 --phase-set=64 --phase-row=1"; do
        echo "$tool .gpu/cbgen run -q $matrix $options"
      done
    done < <(small_matrices | head -9)
  done | CBGEN_DEBUG=1 run_jobs sanitize "$1"
}

# One solution each, of every form and method, and of linear programs.
small_programs() {
  sed 's/^/.gpu\/bench_/' <<'LIST'
solve --check 1 --forms grid:4,grid+steps:4,grid+resident:4 cg:generate:stencil7,n=6
solve --check 1 --forms grid+resident+pipelined+matrix:4,block,block+resident cg:generate:stencil7,n=6
solve --check 1 --forms cluster:4,cluster+resident:4 cg:generate:fe3,n=3
solve --check 1 --recipe merge --forms grid+pipelined+matrix cg:generate:stencil7,n=8
solve --check 1 --forms grid:4,block bicgstab:generate:random,rows=600,cols=600,density=0.01
solve --check 1 --forms grid:4 gmres:generate:stencil7,n=5 minres:generate:stencil7,n=5
solve --check 1 --forms host cg:generate:stencil7,n=6 bicgstab:generate:random,rows=600,cols=600,density=0.01
solve --check 1 --forms host gmres:generate:stencil7,n=5 pagerank:generate:rmat,scale=8,edge_factor=4
solve --check 1 batch:generate:stencil7,n=5
lp --check 1 generate:random,rows=60,cols=200,density=0.05
lp --check 1 --products 1 generate:random,rows=60,cols=200,density=0.05
LIST
}

# The host repeats what a conditional node would, in whose body the tools are wrong, or fail (bench/sanitizer.cu). racecheck
# knows barriers alone: it takes the words by which thread blocks of a cluster wait for each other, in shared memory, for
# races.
sanitizesolve() {
  command -v compute-sanitizer >/dev/null || { say "sanitizesolve: compute-sanitizer is not installed"; return; }
  small_programs | sed 's/.*/racecheck &\nsynccheck &\nmemcheck &\ninitcheck &/' | grep -v '^racecheck .*cluster' | sort -r |
    CBGEN_DEBUG=1 run_jobs sanitizesolve "$1"
}

# petsc LIMIT: ten matrices, five of them real where they were packed.
petsc() {
  local ranks launch matrices cache
  [ -e .gpu/bench_petsc ] || { say "petsc: no PETSc was packed (PETSC of bench/pack_gpu.sh)"; return; }
  matrices=${PETSC_MATRICES:-$(ls -S .gpu/matrices/* 2>/dev/null | head -5) generate:stencil7,n=60 generate:stencil7,n=200
    generate:stencil27,n=100 generate:fe3,n=60 generate:road,n=1500,keep=0.6}
  : >"$out/petsc.md"
  cache=$(mktemp -d)
  for ranks in ${PETSC_RANKS:-1}; do
    launch=()
    [ "$ranks" = 1 ] || launch=(mpiexec -n "$ranks")
    # shellcheck disable=SC2086 # lists of words
    LD_LIBRARY_PATH=$PWD/.gpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} CBGEN_CACHE_DIR=$cache timeout -k 5 "$1" "${launch[@]}" .gpu/bench_petsc -dll_append .gpu/libcbgen_petsc.so \
      -mat_cbgen_expected_products 100000 ${PETSC_OPTIONS:-} $matrices 2>&1 | tee -a "$out/petsc.md"
    say "petsc, $ranks ranks: exit status ${PIPESTATUS[0]}; $(tail -1 "$out/petsc.md")"
  done
  rm -rf "$cache"
}

# petscscaling LIMIT: for one program on so many GPUs
petscscaling() {
  local ranks cache launch=mpiexec
  [ -e .gpu/bench_petsc_scaling ] || { say "petscscaling: no PETSc was packed (PETSC of bench/pack_gpu.sh)"; return; }
  : >"$out/petsc-scaling.md"
  cache=$(mktemp -d)
  for ranks in ${PETSC_RANKS:-1 2 4}; do
    (
      export CBGEN_CACHE_DIR=$cache LD_LIBRARY_PATH=$PWD/.gpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
      export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
      if [ -d .gpu/mpi ]; then
        export OPAL_PREFIX=$PWD/.gpu/mpi LD_LIBRARY_PATH=$PWD/.gpu/mpi/lib:$LD_LIBRARY_PATH
        launch=.gpu/mpi/bin/mpiexec
      fi
      # shellcheck disable=SC2086 # a list of words
      timeout -k 5 "$1" $launch --bind-to none --oversubscribe -n "$ranks" .gpu/bench_petsc_scaling -dll_append .gpu/libcbgen_petsc.so \
        -mat_cbgen_expected_products 100000 -weak 220 -strong 280 ${PETSC_OPTIONS:--use_gpu_aware_mpi 0} 2>&1
    ) | tee -a "$out/petsc-scaling.md"
    say "petscscaling, $ranks GPUs: exit status ${PIPESTATUS[0]}"
  done
  rm -rf "$cache"
}

# api LIMIT: a short form of the checks under each tool of compute-sanitizer, side by side
api() {
  local tool
  timeout -k 5 "$1" .gpu/bench_api_check >"$out/api.txt" 2>&1
  say "api: exit status $?: $(tail -1 "$out/api.txt")"
  cat "$out/api.txt"
  command -v compute-sanitizer >/dev/null || { say "api: compute-sanitizer is not installed"; return; }
  for tool in memcheck racecheck initcheck; do
    (
      options=; [ $tool != memcheck ] || options="--leak-check full"
      # shellcheck disable=SC2086
      OMP_NUM_THREADS=2 timeout -k 5 "$1" compute-sanitizer --tool $tool $options --error-exitcode 99 \
        .gpu/bench_api_check --quick >"$out/api-$tool.txt" 2>&1
      say "api under $tool: exit status $?: $(grep -h 'checks right' "$out/api-$tool.txt"; tail -1 "$out/api-$tool.txt")"
    ) &
  done
  wait
}

# lp LIMIT
lp() {
  # shellcheck disable=SC2086 # a list of words
  timeout -k 5 "$1" .gpu/bench_lp ${LP_MATRICES:-} 2>&1 | tee "$out/lp.txt"
  say "lp: exit status ${PIPESTATUS[0]}"
  cat "$out/lp.txt" >>"$summary"
}

# solve LIMIT
solve() {
  # shellcheck disable=SC2086 # a list of words
  timeout -k 5 "$1" .gpu/bench_solve --forms "${SOLVE_FORMS:-auto}" --json "$out/solve.jsonl" ${SOLVE_MATRICES:-} 2>&1 |
    tee "$out/solve.txt"
  say "solve: exit status ${PIPESTATUS[0]}"
  cat "$out/solve.txt" >>"$summary"
}

# many NAME LIMIT VECTORS [OPTION…] <MATRICES
many() {
  local name=$1 limit=$2 vectors=$3 list
  shift 3
  list=$(mktemp)
  cat >"$list"
  timeout -k 5 "$limit" "$cbgen" bench -q --json "@$list" "--vectors=$vectors" "$@" >>"$out/$name.jsonl" 2>>"$out/$name.err"
  say "$name: $vectors vectors, $(wc -l <"$list") matrices, exit status $?"
  rm -f "$list"
  head -c 1500 "$out/$name.err"
}

# manysweep LIMIT: the same matrices, with other options each time; cuSPARSE in the first run alone
manysweep() {
  local name options tables=()
  rm -f "$out"/manysweep-*.jsonl
  while read -r name options; do
    # shellcheck disable=SC2086
    printf '%s\n' ${SWEEP_MATRICES:-generate:rmat,scale=20,edge_factor=16 generate:uniform,n=1000000,per_row=16
      generate:powerlaw,rows=1500000,max=700} | many "manysweep-$name" "$1" 8 --repeat=3 $options
    tables+=("$name=$out/manysweep-$name.jsonl")
  done <<'RUNS'
auto
strided --recipe=sell --copy-x=off --no-baselines
threads-1 --recipe=sell --copy-x=on --vector-threads=1 --no-baselines
threads-2 --recipe=sell --copy-x=on --vector-threads=2 --no-baselines
threads-4 --recipe=sell --copy-x=on --vector-threads=4 --no-baselines
threads-4-blocks-3 --recipe=sell --copy-x=on --vector-threads=4 --vector-blocks=3 --no-baselines
threads-4-blocks-4 --recipe=sell --copy-x=on --vector-threads=4 --vector-blocks=4 --no-baselines
merge --recipe=merge --copy-x=on --no-baselines
hot --recipe=hot --no-baselines
hot-3500 --recipe=hot --hot-columns=3500 --no-baselines
patterns --recipe=patterns --no-baselines
RUNS
  python3 bench/many_table.py "${tables[@]}" | tee "$out/manysweep.md"
}

# by_recipes NAME LIMIT VECTORS: the slowest ten of that file beside cuSPARSE, by each recipe that one could have chosen
by_recipes() {
  local name=$1 limit=$2 vectors=$3 recipe worst started=$SECONDS tables=()
  worst=$(mktemp)
  python3 bench/many_table.py --worst=10 --files "$out/$name.jsonl" >"$worst"
  rm -f "$out/$name"-*.jsonl
  for recipe in ${MANY_RECIPES:-sell merge patterns hot blocks dia cb}; do
    [ $((SECONDS - started)) -lt "$limit" ] || { say "$name: no time for $recipe"; continue; }
    timeout -k 5 $((limit - SECONDS + started)) "$cbgen" bench -q --json --repeat=3 --no-baselines "--recipe=$recipe" "--vectors=$vectors" \
      "@$worst" >"$out/$name-$recipe.jsonl" 2>>"$out/$name.err" # recipes that do not fit are refused
    tables+=("$recipe=$out/$name-$recipe.jsonl")
  done
  rm -f "$worst"
  python3 bench/many_table.py --worst=10 "$out/$name.jsonl" "${tables[@]}"
}

# manycorpus LIMIT of each part
manycorpus() {
  local vectors
  for vectors in ${CORPUS_VECTORS:-8 4}; do
    rm -f "$out/manycorpus-$vectors.jsonl"
    # shellcheck disable=SC2012 # names of matrices have no newlines; the largest last
    ls -dSr .gpu/matrices/* tests/data/corpus/*.mtx* 2>/dev/null | many "manycorpus-$vectors" "$1" "$vectors" --repeat=3
    python3 bench/many_table.py "$out/manycorpus-$vectors.jsonl" >"$out/manycorpus-$vectors.md"
    tail -1 "$out/manycorpus-$vectors.md" | tee -a "$summary"
    by_recipes "manycorpus-$vectors" "$(($1 / 2))" "$vectors" >"$out/manycorpus-$vectors-worst.md"
    cat "$out/manycorpus-$vectors-worst.md"
  done
}

many_shapes() {
  if [ -n "${MATRICES:-}${MATRICES_MORE:-}" ]; then list_matrices; return; fi
  cat <<'LIST'
generate:fe3,n=56
generate:stencil7,n=160
generate:road,n=2000,keep=0.6
generate:rmat,scale=20,edge_factor=16
generate:stencil7,n=32
LIST
}

# symmetric LIMIT: the same matrices, whose lower triangle counts, with other options each time
symmetric() {
  local list name tables=()
  list=$(mktemp)
  printf '%s\n' ${SYMMETRIC_MATRICES:-generate:stencil7,n=220 generate:stencil27,n=140} >"$list"
  rm -f "$out"/symmetric-*.jsonl
  while read -r name options; do
    # shellcheck disable=SC2086
    timeout -k 5 "$1" "$cbgen" bench -q --json --recipe=dia "@$list" $options >"$out/symmetric-$name.jsonl" 2>>"$out/symmetric.err"
    say "symmetric: $name, exit status $?"
    tables+=("$name=$out/symmetric-$name.jsonl")
  done <<'RUNS'
whole --symmetric=off --values=data
half --symmetric=on
half-256 --symmetric=on --dia-threads=256
half-1024 --symmetric=on --dia-threads=1024
RUNS
  rm -f "$list"
  python3 bench/symmetric_table.py "${tables[@]}" | tee "$out/symmetric.md"
  head -c 1500 "$out/symmetric.err"
}

# complex_numbers LIMIT, for each precision
complex_numbers() {
  local list type
  list=$(mktemp)
  printf '%s\n' ${COMPLEX_MATRICES:-generate:fe3,n=40 generate:stencil7,n=120 generate:road,n=2000,keep=0.6 \
    generate:rmat,scale=18,edge_factor=16 generate:band,n=500000,half=2000,per_row=16 generate:stencil7,n=32} >"$list"
  for type in c128 c64; do
    timeout -k 5 "$1" "$cbgen" bench -q --json "--type=$type" "@$list" >"$out/complex-$type.jsonl" 2>"$out/complex-$type.err"
    say "complex: $type, exit status $?"
    head -c 1500 "$out/complex-$type.err"
  done
  rm -f "$list"
  for type in c128 c64; do echo; echo "$type"; echo; python3 bench/table.py "$out/complex-$type.jsonl"; done | tee "$out/complex.md"
}

# ncu LIMIT
profile() {
  command -v ncu >/dev/null || { say "ncu: not installed"; return; }
  CBGEN_DEBUG=1 timeout "$1" ncu --clock-control none --set full --kernel-name regex:spmv --launch-count 1 \
    "$cbgen" run -q "${NCU_MATRIX:-generate:fe3,n=40}" >"$out/ncu.txt" 2>&1
  say "ncu: exit status $?"
}

unpack || { echo "unpacking .gpu failed: run bench/pack_gpu.sh first" >&2; exit 1; }
{ nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,memory.total --format=csv; nvcc --version | tail -2; } \
  >"$out/device.txt" 2>&1
cat "$out/device.txt"
"$cbgen" run generate:fe3,n=8 || { say "the first product failed: see above"; exit 1; }
opponent
for step in $steps; do
  started=$SECONDS
  case $step in
    check) check "${CHECK_SECONDS:-240}" ;;
    bench) bench bench "${BENCH_SECONDS:-330}" --candidates ;;
    calibrate)
      export CBGEN_CALIBRATION=$out
      "$cbgen" calibrate 2>&1 | tee "$out/calibrate.txt"
      say "calibrate: exit status ${PIPESTATUS[0]}" ;;
    tune) tune "${BENCH_SECONDS:-330}" ;;
    bench32) bench bench32 "${BENCH_SECONDS:-330}" --type=f32 ;;
    fixed) bench_fixed "${BENCH_SECONDS:-330}" ;;
    atomics) bench atomics "${BENCH_SECONDS:-330}" --atomics=on ;;
    recipes) sweep_recipes "${BENCH_SECONDS:-330}" ;;
    examples)
      timeout -k 5 "${EXAMPLES_SECONDS:-180}" bench/examples.sh "$out/examples.md"
      say "examples: exit status $?" ;;
    python)
      bench/python.sh "$out/python.md"
      say "python: exit status $?" ;;
    pycalls)
      CBGEN_LIBRARY=$PWD/.gpu/libcbgen.so.0.1 CBGEN_CALLS=$PWD/.gpu/_calls.abi3.so timeout -k 5 "${PYTHON_SECONDS:-150}" \
        "${PYTHON:-python3}" bench/python_calls.py --json "$out/pycalls.jsonl" 2>&1 | tee "$out/pycalls.md"
      say "pycalls: exit status ${PIPESTATUS[0]}" ;;
    pysolve)
      # shellcheck disable=SC2086 # a list of words
      CBGEN_LIBRARY=$PWD/.gpu/libcbgen.so.0.1 CBGEN_CALLS=$PWD/.gpu/_calls.abi3.so timeout -k 5 "${PYTHON_SECONDS:-150}" \
        "${PYTHON:-python3}" bench/python_solvers.py --json "$out/pysolve.jsonl" ${PYSOLVE_SYSTEMS:-} 2>&1 | tee "$out/pysolve.md"
      say "pysolve: exit status ${PIPESTATUS[0]}" ;;
    setup)
      list_matrices | grep '^generate:' >"$out/generated.txt"
      timeout -k 5 "${WARM_SECONDS:-240}" "$cbgen" bench -q --json --no-baselines "@$out/generated.txt" >"$out/setup.jsonl"
      say "setup: exit status $?"
      python3 bench/table.py --setup "$out/setup.jsonl" | tee "$out/setup.md" ;;
    warm)
      timeout -k 5 "${WARM_SECONDS:-240}" .gpu/bench_warm_start --json "$out/warm.jsonl" --sweep "${WARM_SWEEP:-0}" \
        ${WARM_MATRICES:-} 2>&1 |
        tee "$out/warm.txt"
      say "warm: exit status ${PIPESTATUS[0]}" ;;
    update)
      timeout -k 5 "${WARM_SECONDS:-240}" .gpu/bench_update ${WARM_MATRICES:-} 2>&1 | tee "$out/update.txt"
      say "update: exit status ${PIPESTATUS[0]}" ;;
    coldstart)
      # shellcheck disable=SC2086 # a list of words
      timeout -k 5 "${COLD_SECONDS:-240}" .gpu/bench_cold_start --json "$out/coldstart.jsonl" --repeats "${COLD_REPEATS:-5}" \
        ${COLD_MATRICES:-$(list_matrices)} 2>&1 | tee "$out/coldstart.txt"
      say "coldstart: exit status ${PIPESTATUS[0]}"
      tail -6 "$out/coldstart.txt" >>"$summary" ;;
    devpack)
      timeout -k 5 "${WARM_SECONDS:-240}" .gpu/bench_device_pack ${WARM_MATRICES:-} 2>&1 | tee "$out/devpack.txt"
      say "devpack: exit status ${PIPESTATUS[0]}"
      ls -d .gpu/matrices/* tests/data/corpus/*.mtx* 2>/dev/null >"$out/corpus.txt"
      timeout -k 5 "${WARM_SECONDS:-240}" xargs -r -d '\n' -a "$out/corpus.txt" .gpu/bench_device_pack --repeats 1 \
        >"$out/devpack-corpus.txt" 2>&1
      say "devpack, corpus: exit status $?; $(grep -c 'same bytes' "$out/devpack-corpus.txt") operators the same," \
        "$(grep -c DIFFERS "$out/devpack-corpus.txt") others" ;;
    many)
      # shellcheck disable=SC2086
      for vectors in ${MANY_VECTORS:-8}; do many_shapes | many many "${BENCH_SECONDS:-330}" "$vectors" ${MANY_OPTIONS:-}; done
      python3 bench/many_table.py "$out/many.jsonl" | tee "$out/many.md" ;;
    manysweep) manysweep "${MANY_SECONDS:-120}" ;;
    manycorpus) manycorpus "${MANY_SECONDS:-50}" ;;
    symmetric) symmetric "${SYMMETRIC_SECONDS:-150}" ;;
    heads)
      # shellcheck disable=SC2086 # a list of words
      timeout -k 5 "${HEADS_SECONDS:-120}" .gpu/bench_heads ${HEADS_MATRICES:-} 2>&1 | tee "$out/heads.txt"
      say "heads: exit status ${PIPESTATUS[0]}"
      cat "$out/heads.txt" >>"$summary" ;;
    complex) complex_numbers "${COMPLEX_SECONDS:-60}" ;;
    lp) lp "${LP_SECONDS:-90}" ;;
    solve) solve "${SOLVE_SECONDS:-300}" ;;
    petsc) petsc "${PETSC_SECONDS:-300}" ;;
    petscscaling) petscscaling "${PETSC_SECONDS:-120}" ;;
    api) api "${API_SECONDS:-90}" ;;
    soak)
      timeout -k 5 $((${SOAK_SECONDS:-120} + 60)) .gpu/bench_soak "${SOAK_SECONDS:-120}" 2>&1 | tee "$out/soak.txt"
      say "soak: exit status ${PIPESTATUS[0]}" ;;
    campaign)
      rm -f "$out/campaign-failures.txt"
      # shellcheck disable=SC2086
      timeout -k 5 $((${CAMPAIGN_SECONDS:-480} + 60)) .gpu/bench_campaign --seconds "${CAMPAIGN_SECONDS:-480}" \
        --threads "$(($(nproc) > 4 ? $(nproc) - 2 : $(nproc)))" --failures "$out/campaign-failures.txt" ${CAMPAIGN_OPTIONS:-} \
        >"$out/campaign.txt" 2>"$out/campaign.err"
      say "campaign: exit status $?: $(tail -1 "$out/campaign.txt")"
      grep -m 20 '^FAILED' "$out/campaign.txt"
      grep -v '^FAILED --seed' "$out/campaign.txt"
      tail -3 "$out/campaign.err" ;;
    sanitize) sanitize "${SANITIZE_SECONDS:-140}" ;;
    sanitizesolve) sanitizesolve "${SANITIZE_SECONDS:-140}" ;;
    paper)
      # PAPER_OPTIONS: more options of bench/paper, as --ncu or --suitesparse=DIR
      # shellcheck disable=SC2086
      bench/paper all --quick --repeat=3 --seconds="${PAPER_SECONDS:-20}" --tool="$cbgen" --out="$out/paper" \
        ${PAPER_OPTIONS:-} >"$out/paper.txt" 2>"$out/paper.err"
      say "paper: exit status $?: $(ls "$out"/paper/*.md 2>/dev/null | wc -l) papers; $(tail -1 "$out/paper.err")" ;;
    ncu) profile "${NCU_SECONDS:-60}" ;;
    *) say "unknown step '$step'" ;;
  esac
  echo "($step: $((SECONDS - started)) s)"
done
for name in bench bench32 fixed atomics; do
  case " $steps " in *" $name "*) python3 bench/table.py --short "$out/$name.jsonl" ;; esac
done
echo
cat "$summary"
