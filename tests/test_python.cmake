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

# A sanitized library needs its run-time in the process from the start. Python's own memory is not looked at for leaks.
set(python_environment "PYTHONPATH=${PROJECT_SOURCE_DIR}/python/src;CBGEN_LIBRARY=$<TARGET_FILE:cbgen>"
    PYTHONDONTWRITEBYTECODE=1 CBGEN_CACHE_DIR= OMP_WAIT_POLICY=passive)
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
cbgen_python_test(test_python_solvers)
cbgen_python_test(test_python_solve)
cbgen_python_test(test_python_numerics ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_python_numerics)
cbgen_python_test(test_python_life ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_python_life)
cbgen_python_test(test_python_package ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_python_package)
set_tests_properties(test_python_package PROPERTIES LABELS long) # it builds the library
