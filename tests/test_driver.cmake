# SPDX-License-Identifier: Apache-2.0
# Stand-ins for CUDA's libraries, shared objects that tests open in the real ones' places.
function(cbgen_fake library source variable)
  if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    return()
  endif()
  add_library(${library} MODULE ${source})
  set_target_properties(${library} PROPERTIES C_VISIBILITY_PRESET hidden)
  target_compile_definitions(${library} PRIVATE _GNU_SOURCE)
  foreach(name IN LISTS ARGN)
    if(TARGET ${name})
      add_dependencies(${name} ${library})
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "${variable}=$<TARGET_FILE:${library}>")
    endif()
  endforeach()
endfunction()

# cuSPARSE as it is, and one of each kind before: without SpMVOp, and with its first two parameter lists.
function(cbgen_fake_cusparse library variable)
  cbgen_fake(${library} fake_cusparse.c ${variable} test_bench test_many)
  target_sources(${library} PRIVATE ${PROJECT_SOURCE_DIR}/base/real.c) # it computes with 16-bit numbers, too
  target_include_directories(${library} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${library} PRIVATE m)
endfunction()
cbgen_fake_cusparse(fake_cusparse CBGEN_FAKE_CUSPARSE)
foreach(version 120603 120702 120710 120801 121000 130000)
  cbgen_fake_cusparse(fake_cusparse_${version} CBGEN_FAKE_CUSPARSE_${version})
  target_compile_definitions(fake_cusparse_${version} PRIVATE FAKE_CUSPARSE_VERSION=${version})
endforeach()

# Where CUDA's headers are, the types and numbers that runtime/ writes down are compared with them.
find_path(CBGEN_CUDA_INCLUDE nvrtc.h PATHS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include NO_DEFAULT_PATH)
if(CBGEN_CUDA_INCLUDE)
  add_library(cuda_abi OBJECT cuda_abi.c)
  target_include_directories(cuda_abi PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(cuda_abi SYSTEM PRIVATE ${CBGEN_CUDA_INCLUDE})
else()
  cbgen_skipped_test(cuda_abi "there are no headers of the CUDA toolkit")
endif()
