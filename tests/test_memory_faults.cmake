# SPDX-License-Identifier: Apache-2.0
# Tests in which any malloc may fail: they have an allocator of their own, and the tool's commands as functions.
file(GLOB tool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tool/*.c)
target_sources(test_memory_faults PRIVATE failing_malloc.c ${tool_sources})
set_source_files_properties(${PROJECT_SOURCE_DIR}/tool/main.c PROPERTIES COMPILE_DEFINITIONS main=cbgen_main)
target_sources(test_memory_bound PRIVATE failing_malloc.c)
target_sources(test_api_memory PRIVATE failing_malloc.c)
target_sources(test_memory_room PRIVATE failing_malloc.c)
# It runs before a sanitizer is ready.
set_source_files_properties(failing_malloc.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=all)
