# SPDX-License-Identifier: Apache-2.0
# The profiler that test_api_ranges.c is watched by.
add_library(ranges_injection MODULE injection/injection.c)
set_target_properties(ranges_injection PROPERTIES NO_SONAME ON)
add_dependencies(test_api_ranges ranges_injection)
set_property(TEST test_api_ranges APPEND PROPERTY ENVIRONMENT "CBGEN_TEST_INJECTION=$<TARGET_FILE:ranges_injection>")
