# SPDX-License-Identifier: Apache-2.0
# The fake driver, a shared object that tests open in libcuda's place.
add_library(fake_cuda MODULE fake_driver.c)
set_target_properties(fake_cuda PROPERTIES C_VISIBILITY_PRESET hidden)
target_compile_definitions(fake_cuda PRIVATE _GNU_SOURCE)
foreach(name test_driver test_operator test_bench)
  if(TARGET ${name})
    add_dependencies(${name} fake_cuda)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_CUDA=$<TARGET_FILE:fake_cuda>")
  endif()
endforeach()

# Where CUDA's headers are, the types and numbers that runtime/ writes down are compared with them.
find_path(CBGEN_CUDA_INCLUDE nvrtc.h PATHS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include NO_DEFAULT_PATH)
if(CBGEN_CUDA_INCLUDE)
  add_library(cuda_abi OBJECT cuda_abi.c)
  target_include_directories(cuda_abi PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(cuda_abi SYSTEM PRIVATE ${CBGEN_CUDA_INCLUDE})
endif()
