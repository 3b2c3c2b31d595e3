# SPDX-License-Identifier: Apache-2.0
# The Python package, on the fake CUDA. CBGEN_TEST_PYTHON is a Python that has what scripts/common.sh calls
# PYTHON_PACKAGES; scripts/test makes one. Without NumPy and SciPy only the mirrors of the header are compared with it.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(CBGEN_TEST_PYTHON ${Python3_EXECUTABLE} CACHE FILEPATH "Python with numpy and scipy, for tests of the Python package")
add_test(NAME test_python_abi COMMAND ${CBGEN_TEST_PYTHON} tests/test_python_abi.py ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_python_abi
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(test_python_abi PROPERTIES ENVIRONMENT "CC=${CMAKE_C_COMPILER}")

execute_process(COMMAND ${CBGEN_TEST_PYTHON} -c "import numpy, scipy" RESULT_VARIABLE python_lacks ERROR_QUIET)
if(python_lacks)
  cbgen_skipped_test(test_python "${CBGEN_TEST_PYTHON} has no numpy and scipy")
  return()
endif()

if(CBGEN_SANITIZE AND NOT CMAKE_C_COMPILER_ID STREQUAL GNU)
  cbgen_skipped_test(test_python "only the sanitizers of gcc can be loaded into Python")
  return()
endif()

if(TARGET cbgen_python_calls)
  add_custom_target(python_calls_for_tests ALL DEPENDS cbgen_python_calls)
  set(python_calls $<TARGET_FILE:cbgen_python_calls>)
else()
  set(python_calls ctypes)
endif()

# A sanitized library needs its run-time in the process from the start. Python's own memory is not looked at for leaks.
set(python_environment "PYTHONPATH=${PROJECT_SOURCE_DIR}/python/src;CBGEN_LIBRARY=$<TARGET_FILE:cbgen>"
    PYTHONDONTWRITEBYTECODE=1 CBGEN_CACHE_DIR= OMP_WAIT_POLICY=passive CBGEN_CALLS=${python_calls})
if(CBGEN_SANITIZE)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE python_asan
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  list(APPEND python_environment "LD_PRELOAD=${python_asan}" "ASAN_OPTIONS=detect_leaks=0")
endif()

# cbgen_python_test(NAME ARGUMENT…): tests/NAME.py
function(cbgen_python_test name)
  add_test(NAME ${name} COMMAND ${CBGEN_TEST_PYTHON} tests/${name}.py ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${python_environment}")
  cbgen_run_on_fake_cuda(${name})
endfunction()
cbgen_python_test(test_python_products)
add_test(NAME test_python_products_ctypes COMMAND ${CBGEN_TEST_PYTHON} tests/test_python_products.py
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}) # the same without the compiled part
string(REPLACE "CBGEN_CALLS=${python_calls}" CBGEN_CALLS=ctypes by_ctypes "${python_environment}")
set_tests_properties(test_python_products_ctypes PROPERTIES ENVIRONMENT "${by_ctypes}")
cbgen_run_on_fake_cuda(test_python_products_ctypes)
# With PyTorch itself, which is large and no requirement: where CBGEN_TORCH_PYTHON has it.
set(CBGEN_TORCH_PYTHON ${CBGEN_TEST_PYTHON} CACHE FILEPATH "Python with numpy, scipy and torch, for the tests of cbgen.torch")
add_test(NAME test_python_torch COMMAND ${CBGEN_TORCH_PYTHON} tests/test_python_torch.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(test_python_torch PROPERTIES ENVIRONMENT "${python_environment}")
cbgen_run_on_fake_cuda(test_python_torch)
if(TARGET cbgen_python_calls)
  cbgen_python_test(test_python_calls)
  # and the program that measures what calls cost
  add_test(NAME python_calls_on_fake_cuda WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
           COMMAND ${CBGEN_TEST_PYTHON} bench/python_calls.py --stand-ins --grid 4)
  set_tests_properties(python_calls_on_fake_cuda PROPERTIES ENVIRONMENT "${python_environment}")
  cbgen_run_on_fake_cuda(python_calls_on_fake_cuda)
else()
  cbgen_skipped_test(test_python_calls "there are no headers of Python 3.10 or later")
endif()
cbgen_python_test(test_python_solvers)
add_test(NAME python_solvers_on_fake_cuda WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} # beside SciPy in CuPy's place
         COMMAND ${CBGEN_TEST_PYTHON} bench/python_solvers.py --stand-ins cg:stencil7,4 cg:fe3,2 bicgstab:stencil7,3 gmres:stencil7,3)
set_tests_properties(python_solvers_on_fake_cuda PROPERTIES ENVIRONMENT "${python_environment}")
cbgen_run_on_fake_cuda(python_solvers_on_fake_cuda)
cbgen_python_test(test_python_solve)
cbgen_python_test(test_python_lp)
cbgen_python_test(test_python_numerics ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_python_numerics)
cbgen_python_test(test_python_life ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_python_life)
cbgen_python_test(test_python_package ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_python_package)
set_tests_properties(test_python_package PROPERTIES LABELS long) # it builds the library
