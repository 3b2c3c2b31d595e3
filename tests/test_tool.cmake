# SPDX-License-Identifier: Apache-2.0
# Tests that drive the tool from outside, the installed package, and the rules of the source tree. Python, standard
# library only.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(scratch ${CMAKE_CURRENT_BINARY_DIR}/tmp)
set(tool $<TARGET_FILE:cbgen_tool>)

# cbgen_script_test(NAME ARGUMENT…): runs tests/NAME.py in the source directory. The target NAME is what it takes.
function(cbgen_script_test name)
  add_custom_target(${name} DEPENDS cbgen_tool)
  add_test(NAME ${name} COMMAND Python3::Interpreter tests/${name}.py ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

if(CBGEN_SANITIZE)
  set(sanitizers "-fsanitize=address,undefined")
endif()
cbgen_script_test(test_style ${tool})
cbgen_script_test(test_tool ${tool} ${scratch}/test_tool)
cbgen_script_test(test_goldens ${tool})
cbgen_script_test(test_scripts ${scratch}/test_scripts)
cbgen_script_test(test_skips ${PROJECT_BINARY_DIR} ${scratch}/test_skips)
cbgen_script_test(test_install ${PROJECT_BINARY_DIR} ${scratch}/test_install "${sanitizers}")
cbgen_script_test(test_packaging)
cbgen_script_test(test_abi ${PROJECT_BINARY_DIR} ${scratch}/test_abi)
cbgen_script_test(test_cmake_kernel ${PROJECT_BINARY_DIR} ${scratch}/test_cmake_kernel)
cbgen_script_test(test_subproject ${scratch}/test_subproject)

# The other compiler's build, when the script that drives both names it: a short run of its fuzz targets.
if(CBGEN_CLANG_BUILD)
  add_test(NAME clang_fuzz COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${CBGEN_CLANG_BUILD} -L fuzz -j 2
           --output-on-failure --no-tests=error)
endif()
