# SPDX-License-Identifier: Apache-2.0
# The fake driver and the fake cuSPARSE, shared objects that tests open in the real ones' places.
add_library(fake_cuda MODULE fake_driver.c)
add_library(fake_cusparse MODULE fake_cusparse.c)
foreach(library fake_cuda fake_cusparse)
  set_target_properties(${library} PROPERTIES C_VISIBILITY_PRESET hidden)
  target_compile_definitions(${library} PRIVATE _GNU_SOURCE)
endforeach()
foreach(name test_driver test_operator test_bench)
  add_dependencies(${name} fake_cuda fake_cusparse)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_CUDA=$<TARGET_FILE:fake_cuda>"
               "CBGEN_FAKE_CUSPARSE=$<TARGET_FILE:fake_cusparse>")
endforeach()

# Where CUDA's headers are, the types and numbers that runtime/ writes down are compared with them.
find_path(CBGEN_CUDA_INCLUDE nvrtc.h PATHS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include NO_DEFAULT_PATH)
if(CBGEN_CUDA_INCLUDE)
  add_library(cuda_abi OBJECT cuda_abi.c)
  target_include_directories(cuda_abi PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(cuda_abi SYSTEM PRIVATE ${CBGEN_CUDA_INCLUDE})
endif()
