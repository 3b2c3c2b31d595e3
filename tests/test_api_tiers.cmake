# SPDX-License-Identifier: Apache-2.0
# The tool that test_api_tiers.c has a file of families made by.
add_dependencies(test_api_tiers cbgen_tool)
set_property(TEST test_api_tiers APPEND PROPERTY ENVIRONMENT "CBGEN_TEST_TOOL=$<TARGET_FILE:cbgen_tool>")
