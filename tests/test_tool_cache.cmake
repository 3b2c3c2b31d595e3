# SPDX-License-Identifier: Apache-2.0
# `cbgen cache` from outside, on entries that a small program puts.
add_executable(cache_put ${CMAKE_CURRENT_SOURCE_DIR}/cache_put.c)
target_link_libraries(cache_put PRIVATE cbgen_internal)
cbgen_script_test(test_tool_cache ${tool} $<TARGET_FILE:cache_put> ${scratch}/test_tool_cache)
cbgen_run_on_fake_cuda(test_tool_cache)
