# SPDX-License-Identifier: Apache-2.0
# The target cbgen_python_calls: the compiled part of the Python package (python/src/cbgen_spmv/_calls.c), on demand. There is
# none without the headers of Python 3.10 or later. It serves every later Python (the limited interface), and is not linked
# with libcbgen.
find_package(Python3 3.10 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python3_Development.Module_FOUND)
  message(STATUS "The compiled part of the Python package is left out: it needs the headers of Python 3.10 or later")
  return()
endif()
add_library(cbgen_python_calls MODULE EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/../python/src/cbgen_spmv/_calls.c)
target_include_directories(cbgen_python_calls PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../include)
target_include_directories(cbgen_python_calls SYSTEM PRIVATE ${Python3_INCLUDE_DIRS})
# slots of types are functions in pointers to data, which ISO C has no word for
target_compile_options(cbgen_python_calls PRIVATE -Wno-pedantic)
set_target_properties(cbgen_python_calls PROPERTIES PREFIX "" OUTPUT_NAME _calls SUFFIX .abi3.so)
