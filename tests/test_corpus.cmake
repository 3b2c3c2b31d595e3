# SPDX-License-Identifier: Apache-2.0
# Real matrices, with kernels of several types. One test each, so that they run side by side.
add_executable(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus.c)
target_link_libraries(corpus PRIVATE test_layouts)
file(GLOB matrices CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/data/corpus/*.mtx.zst
     ${PROJECT_SOURCE_DIR}/examples/*.mtx.gz)
foreach(matrix IN LISTS matrices)
  get_filename_component(name ${matrix} NAME)
  string(REGEX REPLACE "\\.mtx\\..*" "" name ${name})
  add_test(NAME corpus_${name} COMMAND corpus ${matrix} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # Leaks are looked for in the unit tests; here LeakSanitizer's tracer met NVRTC's threads and crashed now and then.
  set_tests_properties(corpus_${name} PROPERTIES LABELS corpus
                       ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0;OMP_WAIT_POLICY=passive")
endforeach()
