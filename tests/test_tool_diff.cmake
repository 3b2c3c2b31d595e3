# SPDX-License-Identifier: Apache-2.0
# `cbgen diff` from outside; cache_put is made in test_tool_cache.cmake.
cbgen_script_test(test_tool_diff ${tool} $<TARGET_FILE:cache_put> ${scratch}/test_tool_diff)
add_dependencies(test_tool_diff cache_put)
