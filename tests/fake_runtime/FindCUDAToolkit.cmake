# SPDX-License-Identifier: Apache-2.0
# Stands in CMAKE_MODULE_PATH for CMake's module of this name: CUDA::cudart is runtime.c, on the fake driver.
add_library(fake_runtime STATIC ${CMAKE_CURRENT_LIST_DIR}/runtime.c)
target_compile_definitions(fake_runtime PRIVATE _GNU_SOURCE)
target_include_directories(fake_runtime PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../.. PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(fake_runtime PUBLIC ${CMAKE_DL_LIBS})
add_library(CUDA::cudart ALIAS fake_runtime)
set(CUDAToolkit_FOUND TRUE)
