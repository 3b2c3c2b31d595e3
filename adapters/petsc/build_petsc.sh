#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds PETSc with CUDA from PyPI's source and installs it, for measurements on a GPU machine that cannot build it
# (bench/pack_gpu.sh, PETSC=DIRECTORY/installed). About 20 minutes on one core.
#
#   adapters/petsc/build_petsc.sh DIRECTORY [CONFIGURE OPTION…]
#
# VERSION (3.24.6) is PETSc's, ARCH (90) the GPU's, CUDA (/usr/local/cuda) the toolkit, JOBS (1) how many files are
# compiled at a time. Without MPI unless options say otherwise: --with-mpi=1 --with-cc=mpicc --with-cxx=mpicxx, for
# several GPUs; run with -use_gpu_aware_mpi 0 unless that MPI knows of CUDA. BLAS and LAPACK are Debian's
# (libblas-dev, liblapack-dev). What was done is not done again.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '3,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
directory=$(realpath "$1")
shift
version=${VERSION:-3.24.6}
source=$directory/petsc-$version
cd "$directory"

if [ ! -d "$source" ]; then
  # pip asks the source for its requirements, which takes what its set-up script imports
  [ -x python/bin/pip ] || { python3 -m venv python && python/bin/pip -q install setuptools wheel numpy; }
  python/bin/pip download -q --no-deps --no-binary :all: --no-build-isolation "petsc==$version"
  tar -xzf "petsc-$version.tar.gz"
fi
cd "$source"
if [ ! -e configured/lib/petsc/conf/petscvariables ]; then
  ./configure PETSC_ARCH=configured --prefix="$directory/installed" --with-cuda \
    --with-cuda-dir="${CUDA:-/usr/local/cuda}" --with-cuda-arch="${ARCH:-90}" --with-fc=0 --with-mpi=0 --with-debugging=0 --with-x=0 \
    --with-blaslapack-lib="-llapack -lblas" COPTFLAGS=-O2 CXXOPTFLAGS=-O2 CUDAOPTFLAGS=-O2 "$@"
fi
make PETSC_DIR="$source" PETSC_ARCH=configured MAKE_NP="${JOBS:-1}" all
make PETSC_DIR="$source" PETSC_ARCH=configured install
echo "PETSc $version is in $directory/installed"
