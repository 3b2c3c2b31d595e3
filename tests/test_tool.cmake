# SPDX-License-Identifier: Apache-2.0
# Tests that drive the tool from outside, the installed package, and the rules of the source tree. Python, standard
# library only.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(scratch ${CMAKE_CURRENT_BINARY_DIR}/tmp)
set(tool $<TARGET_FILE:cbgen_tool>)

# cbgen_script_test(NAME ARGUMENT…): runs tests/NAME.py in the source directory.
function(cbgen_script_test name)
  add_test(NAME ${name} COMMAND Python3::Interpreter tests/${name}.py ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()

if(CBGEN_SANITIZE)
  set(sanitizers "-fsanitize=address,undefined")
endif()
cbgen_script_test(test_style ${tool})
cbgen_script_test(test_tool ${tool} ${scratch}/test_tool)
cbgen_script_test(test_goldens ${tool})
cbgen_script_test(test_install ${PROJECT_BINARY_DIR} ${scratch}/test_install "${sanitizers}")

# Real matrices: generate, verify on the host, in both types. One test each, so that they run side by side.
file(GLOB matrices CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/data/corpus/*.mtx.zst
     ${PROJECT_SOURCE_DIR}/examples/*.mtx.gz)
foreach(matrix IN LISTS matrices)
  get_filename_component(name ${matrix} NAME)
  string(REGEX REPLACE "\\.mtx\\..*" "" name ${name})
  add_test(NAME corpus_${name} COMMAND Python3::Interpreter tests/test_tool_corpus.py ${tool} ${matrix}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # Leaks are looked for in the unit tests; here LeakSanitizer's tracer met NVRTC's threads and crashed now and then.
  set_tests_properties(corpus_${name} PROPERTIES LABELS corpus TIMEOUT 300
                       ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0;OMP_WAIT_POLICY=passive")
endforeach()

# The other compiler's build, when the script that drives both names it: a short run of its fuzz targets.
if(CBGEN_CLANG_BUILD)
  add_test(NAME clang_fuzz COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${CBGEN_CLANG_BUILD} -L fuzz -j 2
           --output-on-failure --no-tests=error)
  set_tests_properties(clang_fuzz PROPERTIES PROCESSORS 2)
endif()
