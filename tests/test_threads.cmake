# SPDX-License-Identifier: Apache-2.0
# Tests under ThreadSanitizer: libcbgen is compiled once more for them. It does not
# understand OpenMP's barriers, so directives are left out: what is asked is what threads of the application do. The fake
# CUDA takes part without a sanitizer; its lock is seen all the same. Nothing is inherited of what the build around this
# adds for other sanitizers, which this one does not go with.
option(CBGEN_TEST_THREADS "build tests of threads, which compiles libcbgen once more with ThreadSanitizer" ${CBGEN_SANITIZE})
if(NOT CBGEN_TEST_THREADS)
  return()
endif()

set(threads_sources)
foreach(stage IN LISTS CBGEN_STAGES)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${stage}/*.c)
  list(APPEND threads_sources ${sources})
endforeach()
set(threads_made ${PROJECT_BINARY_DIR}/embedded.c ${PROJECT_BINARY_DIR}/fingerprint.c)
set_source_files_properties(${threads_made} PROPERTIES GENERATED TRUE)

add_library(threads_library OBJECT ${threads_sources} ${threads_made})
add_dependencies(threads_library cbgen_embedded cbgen_fingerprint) # which make them

add_library(fake_cuda_threads MODULE ${fake_sources} ${fake_generated}/emulator.cpp)
set_target_properties(fake_cuda_threads PROPERTIES C_VISIBILITY_PRESET hidden NO_SONAME ON COMPILE_OPTIONS "-w"
                      LINK_OPTIONS "LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/fake/fake.map;LINKER:-z,nodelete")
target_include_directories(fake_cuda_threads PRIVATE ${PROJECT_SOURCE_DIR} ${fake_generated})
target_compile_definitions(fake_cuda_threads PRIVATE _GNU_SOURCE FAKE_CXX="${CMAKE_CXX_COMPILER}"
                           FAKE_CXX_FLAGS="${fake_flags}" FAKE_PRELUDE="${fake_prelude_path}")
fake_read_prelude(fake_cuda_threads threads "${fake_flags}")
target_link_libraries(fake_cuda_threads PRIVATE Threads::Threads ${CMAKE_DL_LIBS})

function(compile_for_threads target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_compile_definitions(${target} PRIVATE _GNU_SOURCE CB_VERSION="${PROJECT_VERSION}"
                             CBGEN_LIBDIR="${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "-w;-O0;-g1;-fsanitize=thread;-fno-omit-frame-pointer"
                        LINK_OPTIONS "-fsanitize=thread")
  target_link_libraries(${target} PRIVATE PkgConfig::CBGEN_ARCHIVE PkgConfig::CBGEN_DEPS PkgConfig::CMOCKA
                        ${OpenMP_C_LIBRARIES} Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()
compile_for_threads(threads_library)

# cbgen_thread_test(NAME SOURCE): the test of another name, once more.
function(cbgen_thread_test name source)
  add_executable(${name} ${source} $<TARGET_OBJECTS:threads_library>)
  compile_for_threads(${name})
  add_dependencies(${name} fake_cuda_threads cbgen_tool)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/tmp/${name})
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_property(TEST ${name} PROPERTY ENVIRONMENT
               "CBGEN_FAKE_CUDA=$<TARGET_FILE:fake_cuda_threads>" "CBGEN_LIBCUDA=$<TARGET_FILE:fake_cuda_threads>"
               "CBGEN_NVRTC=$<TARGET_FILE:fake_cuda_threads>" "CBGEN_FAKE_CACHE=${FAKE_CUDA_CACHE}"
               "CBGEN_TEST_TMP=${CMAKE_CURRENT_BINARY_DIR}/tmp/${name}"
               "CBGEN_TEST_TOOL=$<TARGET_FILE:cbgen_tool>" "CBGEN_TEST_OPERATORS=1000")
endfunction()
cbgen_thread_test(test_threads test_api_tiers.c)
cbgen_thread_test(test_modules_threads test_modules.c)
