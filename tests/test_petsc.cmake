# SPDX-License-Identifier: Apache-2.0
# The PETSc plug-in, loaded by PETSc as users load it, on one rank and on two, on the fake driver: beside PETSc's own types.
set(petsc_tests petsc_matrices petsc_products petsc_solvers petsc_parallel_matrices petsc_parallel_products
    petsc_parallel_solvers petsc_without_driver petsc_bench petsc_bench_scaling petsc_from_python)
if(NOT TARGET cbgen_petsc)
  foreach(name IN LISTS petsc_tests)
    cbgen_skipped_test(${name} "${CBGEN_PETSC_MISSING}")
  endforeach()
  return()
endif()

add_executable(petsc_check petsc_support.c petsc_matrices.c petsc_products.c petsc_solvers.c)
target_compile_definitions(petsc_check PRIVATE _GNU_SOURCE)
target_include_directories(petsc_check PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(petsc_check PRIVATE PkgConfig::CBGEN_PETSC_LIBRARY ${CMAKE_DL_LIBS} m)
add_dependencies(petsc_check cbgen_petsc)
if(MPI_C_FOUND)
  target_link_libraries(petsc_check PRIVATE MPI::MPI_C)
endif()

# Family kernels of one recipe: the fake driver compiles few texts. The driver test runs what a user gets by default.
set(petsc_options -dll_append $<TARGET_FILE:cbgen_petsc> -malloc_debug -malloc_dump -mat_cbgen_recipe sell
    -mat_cbgen_specialise never -mat_cbgen_cache none)
foreach(what matrices products solvers)
  add_test(NAME petsc_${what} COMMAND petsc_check ${what} ${petsc_options})
  if(MPI_C_FOUND AND MPIEXEC_EXECUTABLE)
    add_test(NAME petsc_parallel_${what} COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} 2
             $<TARGET_FILE:petsc_check> ${what} ${petsc_options})
    set_tests_properties(petsc_parallel_${what} PROPERTIES PROCESSORS 2)
  else()
    cbgen_skipped_test(petsc_parallel_${what} "this PETSc has no MPI")
  endif()
endforeach()
add_test(NAME petsc_without_driver COMMAND petsc_check matrices -dll_append $<TARGET_FILE:cbgen_petsc>)
set_tests_properties(petsc_without_driver PROPERTIES ENVIRONMENT "CBGEN_LIBCUDA=/none/libcuda.so.1"
                     PASS_REGULAR_EXPRESSION "cbgen: [^\n]*/none/libcuda.so.1")

# The program that measures, which compares what it computes.
add_custom_target(petsc_bench_for_tests ALL DEPENDS bench_petsc bench_petsc_scaling)
add_test(NAME petsc_bench COMMAND bench_petsc ${petsc_options} -products 2 -iterations 3 generate:stencil7,n=5)
if(MPI_C_FOUND)
  add_test(NAME petsc_bench_scaling COMMAND ${MPIEXEC_EXECUTABLE} --oversubscribe ${MPIEXEC_NUMPROC_FLAG} 2
           $<TARGET_FILE:bench_petsc_scaling> ${petsc_options} -products 2 -iterations 3 -overlap 1 -weak 5 -strong 5)
  set_tests_properties(petsc_bench_scaling PROPERTIES PROCESSORS 2)
else()
  cbgen_skipped_test(petsc_bench_scaling "this PETSc has no MPI")
endif()

# petsc4py is compiled for one PETSc and one Python: Debian's lies beside its PETSc.
find_program(CBGEN_PETSC_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH DOC "Python with the petsc4py of the PETSc that is found")
pkg_get_variable(petsc_prefix PETSc prefix)
set(petsc4py "PYTHONPATH=${petsc_prefix}/lib/python3/dist-packages")
execute_process(COMMAND ${CMAKE_COMMAND} -E env ${petsc4py} ${CBGEN_PETSC_PYTHON} -c "import petsc4py, numpy"
                RESULT_VARIABLE python_lacks OUTPUT_QUIET ERROR_QUIET)
if(python_lacks)
  cbgen_skipped_test(petsc_from_python "there is no petsc4py for this PETSc (Debian: python3-petsc4py-real)")
elseif(CBGEN_SANITIZE AND NOT CMAKE_C_COMPILER_ID STREQUAL GNU)
  cbgen_skipped_test(petsc_from_python "only the sanitizers of gcc can be loaded into Python")
else()
  add_test(NAME petsc_from_python WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
           COMMAND ${CBGEN_PETSC_PYTHON} tests/test_petsc4py.py $<TARGET_FILE:cbgen_petsc>)
  set_property(TEST petsc_from_python PROPERTY ENVIRONMENT ${petsc4py} PYTHONDONTWRITEBYTECODE=1)
  if(CBGEN_SANITIZE)
    execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE petsc_asan
                    OUTPUT_STRIP_TRAILING_WHITESPACE)
    set_property(TEST petsc_from_python APPEND PROPERTY ENVIRONMENT "LD_PRELOAD=${petsc_asan}")
  endif()
endif()

foreach(name IN LISTS petsc_tests)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1
               OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CBGEN_FAKE_STRICT=1 CBGEN_FAKE_SET=lazy=1)
  if(NOT name STREQUAL petsc_without_driver)
    cbgen_run_on_fake_cuda(${name})
  endif()
  if(CBGEN_SANITIZE) # MPI leaves memory behind at the end; PETSc counts its own, the fake driver the GPU's
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0")
  endif()
endforeach()
