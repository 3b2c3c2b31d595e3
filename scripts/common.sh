# SPDX-License-Identifier: Apache-2.0
# What scripts/try and scripts/test share: installing what is missing, and saying so. Sourced, not run.
#
#   CC, CXX    choose the compiler (gcc, g++); clang works as well
#   BUILD      where everything is built and kept (build/ in the source tree)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BUILD=${BUILD:-$PWD/build}
mkdir -p "$BUILD"
JOBS=$(nproc)

step() { printf '\n== %s\n' "$*"; }

# Installs those of the Debian packages named that are missing; touches apt only when one is.
need_packages() {
  local package missing=() root=()
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "This is no Debian system: the equivalents of these packages must be there: $*"
    return
  fi
  for package; do
    dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  step "Installing with apt: ${missing[*]}"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "Run this as root, or install sudo, or install these packages" >&2; exit 1; }
    root=(sudo)
  fi
  "${root[@]}" apt-get update -qq
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" \
    >"$BUILD/apt.log" 2>&1 || { tail -20 "$BUILD/apt.log" >&2; exit 1; }
}

# The packages that building takes; with clang, its OpenMP and sanitizer runtimes too.
BUILD_PACKAGES=(gcc g++ make cmake pkg-config ca-certificates libarchive-dev zlib1g-dev libzstd-dev libxxhash-dev
  libjansson-dev)
CLANG_PACKAGES=(clang-14 clang libomp-14-dev libclang-rt-14-dev)
case ${CC:-} in *clang*) BUILD_PACKAGES+=("${CLANG_PACKAGES[@]}") ;; esac

# NVRTC (the CUDA compiler as a library) is optional: it compiles kernels without a GPU, so that registers and spills
# can be reported. Where no CUDA toolkit brings it, its PyPI wheel goes into $BUILD/nvrtc.
find_nvrtc() {
  local file
  for file in "${CBGEN_NVRTC:-}" /usr/local/cuda*/lib64/libnvrtc.so.1[23] /usr/lib/x86_64-linux-gnu/libnvrtc.so.1[23] \
    "$BUILD"/nvrtc/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1[23]; do
    [ -e "$file" ] || continue
    export CBGEN_NVRTC=$file
    return 0
  done
  ldconfig -p 2>/dev/null | grep -q 'libnvrtc\.so\.1[23]'
}

need_nvrtc() {
  find_nvrtc && return
  need_packages python3 python3-venv
  step "Fetching NVRTC 13.0 from PyPI into ${BUILD#"$PWD"/}/nvrtc"
  if python3 -m venv "$BUILD/nvrtc" &&
    "$BUILD/nvrtc/bin/pip" --disable-pip-version-check -q install 'nvidia-cuda-nvrtc==13.0.*' && find_nvrtc; then
    echo "$CBGEN_NVRTC"
  else
    echo "NVRTC could not be fetched. Everything works without it but compiling kernels for the GPU." >&2
  fi
}

# Chromium without a window looks at the pages that `cbgen report` writes: about 100 MB to fetch, 310 MB on the disk.
# Any of the names that tests/browser.py knows will do.
need_browser() {
  local name
  for name in chromium-headless-shell chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && return
  done
  (need_packages chromium-headless-shell) ||
    echo "Chromium could not be installed: pages are tested without a browser." >&2
}

# PETSc with Open MPI, for the tests of its plug-in: 67 MB to fetch, 284 MB on the disk.
need_petsc() {
  (need_packages libpetsc-real-dev python3-petsc4py-real) || echo "PETSc could not be installed: its plug-in is not tested." >&2
}

# What the tests of the Python package take besides Python: from PyPI, into $BUILD/python.
PYTHON_PACKAGES=('numpy>=1.26,<3' 'scipy>=1.12,<2' 'mypy>=1.8,<3' 'scikit-build-core>=0.11,<2')

# Sets TEST_PYTHON to a Python that has them; to the system's, where PyPI cannot be reached.
need_python() {
  need_packages python3 python3-venv python3-dev
  TEST_PYTHON=$BUILD/python/bin/python
  local wanted="${PYTHON_PACKAGES[*]}"
  [ "$(cat "$BUILD/python/wanted" 2>/dev/null)" != "$wanted" ] || return 0
  step "Fetching NumPy, SciPy, mypy and scikit-build-core from PyPI into ${BUILD#"$PWD"/}/python"
  if python3 -m venv "$BUILD/python" &&
    "$TEST_PYTHON" -m pip --disable-pip-version-check -q install "${PYTHON_PACKAGES[@]}"; then
    echo "$wanted" >"$BUILD/python/wanted"
  else
    echo "They could not be fetched: the Python package is not tested." >&2
    TEST_PYTHON=$(command -v python3)
  fi
}

# Keeps in LOG what it reads, and shows of it how far the build is: a line for every tenth, with the file that it is at.
show_build() {
  tee "$1" | awk '
    /^\[[ 0-9%\/]+\] (Building|Linking) / { # "[ 37%] Building …" by make, "[12/128] Building …" by ninja
      end = index($0, "]")
      split(substr($0, 2, end - 2), part, "/")
      percent = part[2] ? int(100 * part[1] / part[2]) : part[1] + 0
      if (percent < due) next
      what = substr($0, end + 2)
      sub(/^Building [^ ]+ object /, "", what)
      sub(/CMakeFiles\/[^\/]*\.dir\//, "", what)
      sub(/\.o$/, "", what)
      printf "  %3d %%  %s\n", percent, what
      fflush()
      while (due <= percent) due += 10
    }'
}

# build DIRECTORY [CMAKE ARGUMENT…]: configures and builds there, and shows how far it is; the log is shown when
# something fails.
build() {
  local directory=$1 log=$1.log
  shift
  cmake -S . -B "$directory" "$@" >"$log.configure" 2>&1 || fail_build "$log.configure"
  echo "  configured with $(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$directory/CMakeCache.txt"), $JOBS at a time; log: ${log#"$PWD"/}"
  cmake --build "$directory" -j "$JOBS" 2>&1 | show_build "$log" || fail_build "$log"
}

fail_build() {
  tail -60 "$1" >&2
  echo "Building failed; all of it is in $1" >&2
  exit 1
}

# run_tests DIRECTORY [CTEST ARGUMENT…]: ctest, with a list of what was skipped and why before its summary. Fails when a
# test does; and, where CBGEN_ALLOWED_SKIPS names a file, when a skip is not in it.
run_tests() {
  local directory=$1 status=0 summary results whole=100000000
  shift
  summary=$(mktemp) results=$directory/Testing/results.xml
  rm -f "$results"
  ctest --test-dir "$directory" --no-tests=error --output-junit "$results" --test-output-size-passed "$whole" \
    --test-output-size-failed "$whole" "$@" |
    awk -v summary="$summary" '/^[0-9]+% tests passed/ { held = 1 } { if (held) print > summary; else { print; fflush() } }' ||
    status=$?
  if [ -e "$results" ]; then # not where ctest was asked for something else than to run tests
    python3 tests/report_skips.py "$results" ${CBGEN_ALLOWED_SKIPS:+"$CBGEN_ALLOWED_SKIPS"} || status=1
  fi
  echo
  cat "$summary"
  rm -f "$summary"
  return "$status"
}
