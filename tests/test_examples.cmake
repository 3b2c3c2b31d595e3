# SPDX-License-Identifier: Apache-2.0
# The examples, linked against a fake toolkit so that they run on the fake driver: test_examples.py runs them, and
# builds them as a user does. Only CUDA's headers are needed for the first, its libraries for the second.
find_path(EXAMPLES_CUDA_INCLUDE cusparse.h PATHS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
          /usr/local/cuda/include NO_DEFAULT_PATH)
if(NOT EXAMPLES_CUDA_INCLUDE OR NOT EXISTS ${EXAMPLES_CUDA_INCLUDE}/cublas_v2.h)
  cbgen_skipped_test(test_examples "there are no headers of the CUDA toolkit")
  return()
endif()

add_library(fake_toolkit STATIC fake_toolkit.c)
target_compile_definitions(fake_toolkit PRIVATE _GNU_SOURCE)
target_include_directories(fake_toolkit PRIVATE ${PROJECT_SOURCE_DIR})
target_include_directories(fake_toolkit SYSTEM PUBLIC ${EXAMPLES_CUDA_INCLUDE})
target_link_libraries(fake_toolkit PUBLIC m ${CMAKE_DL_LIBS})

file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
file(GLOB example_common CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/common/*.c)
add_library(fake_examples_common OBJECT ${example_common})
target_link_libraries(fake_examples_common PUBLIC fake_toolkit cbgen)
foreach(source IN LISTS example_sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(fake_${name} ${source})
  target_link_libraries(fake_${name} PRIVATE fake_examples_common fake_toolkit cbgen)
  set_target_properties(fake_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fake_examples
                        OUTPUT_NAME ${name})
endforeach()

add_executable(examples_matrices examples_matrices.c)
target_link_libraries(examples_matrices PRIVATE fake_examples_common fake_toolkit cbgen)
target_include_directories(examples_matrices PRIVATE ${PROJECT_SOURCE_DIR})
add_test(NAME test_examples_matrices COMMAND examples_matrices)

if(CBGEN_SANITIZE)
  set(example_flags "-fsanitize=address,undefined")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME test_examples
         COMMAND Python3::Interpreter tests/test_examples.py ${CMAKE_CURRENT_BINARY_DIR}/fake_examples
                 $<TARGET_FILE:fake_cuda> ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_examples ${PROJECT_BINARY_DIR}
                 "${example_flags}"
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(test_examples PROPERTIES
                     ENVIRONMENT "CBGEN_FAKE_CACHE=${CMAKE_CURRENT_BINARY_DIR}/tmp/fake_cache;OMP_WAIT_POLICY=passive")
