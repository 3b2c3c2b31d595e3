# SPDX-License-Identifier: Apache-2.0
# cbgen.hpp and cbgen.f90, on the fake CUDA: a program of checks in each language, and the examples as a user builds them.
add_library(fake_runtime STATIC fake_runtime/runtime.c)
target_compile_definitions(fake_runtime PRIVATE _GNU_SOURCE)
target_include_directories(fake_runtime PRIVATE ${PROJECT_SOURCE_DIR}
                           PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/fake_runtime)
target_link_libraries(fake_runtime PUBLIC ${CMAKE_DL_LIBS})

add_executable(test_cpp test_cpp.cpp)
target_link_libraries(test_cpp PRIVATE fake_runtime cbgen)
add_test(NAME test_cpp COMMAND test_cpp)
set_tests_properties(test_cpp PROPERTIES ENVIRONMENT "CBGEN_CACHE_DIR=;CBGEN_FAKE_STRICT=1;OMP_WAIT_POLICY=passive")

if(CBGEN_SANITIZE)
  set(languages_flags "-fsanitize=address,undefined")
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
foreach(name test_languages test_fortran)
  add_test(NAME ${name} COMMAND Python3::Interpreter tests/${name}.py ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_BINARY_DIR}/tmp/${name}
           "${languages_flags}" WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "CBGEN_FAKE_STRICT=1;OMP_WAIT_POLICY=passive")
endforeach()
cbgen_run_on_fake_cuda(test_cpp test_languages test_fortran)
