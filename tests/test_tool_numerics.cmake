# SPDX-License-Identifier: Apache-2.0
# The library, the tool and the Python package in processes with a decimal comma and another rounding mode: the C
# interface in test_numerics.c, Python in test_python_numerics.py, and the tool as a program into which
# hostile_numerics.c is loaded first (behind the sanitizers' run-time library, which will be the very first).
cbgen_run_on_fake_cuda(test_numerics)

add_library(hostile_numerics MODULE hostile_numerics.c)
target_compile_definitions(hostile_numerics PRIVATE _GNU_SOURCE)
target_compile_options(hostile_numerics PRIVATE -fno-sanitize=all)
target_link_libraries(hostile_numerics PRIVATE m)
set_property(TARGET hostile_numerics PROPERTY LINK_OPTIONS "")
add_dependencies(test_numerics hostile_numerics)
if(CBGEN_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL GNU)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE numerics_asan
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
cbgen_script_test(test_tool_numerics ${tool} ${scratch}/test_tool_numerics ${numerics_asan}
                  $<TARGET_FILE:hostile_numerics>)
cbgen_run_on_fake_cuda(test_tool_numerics)
