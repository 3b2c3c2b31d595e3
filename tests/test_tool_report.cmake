# SPDX-License-Identifier: Apache-2.0
# `cbgen report` from outside, with what the fake GPU measures; and its pages in a browser.
cbgen_script_test(test_tool_report ${tool} ${scratch}/test_tool_report)
cbgen_use_fake_cuda(test_tool_report)
add_dependencies(test_tool_report fake_cusparse)
set_property(TEST test_tool_report APPEND PROPERTY ENVIRONMENT "CBGEN_LIBCUDA=$<TARGET_FILE:fake_cuda>"
             "CBGEN_FAKE_CUSPARSE=$<TARGET_FILE:fake_cusparse>" "OMP_WAIT_POLICY=passive")
target_sources(test_html PRIVATE ${PROJECT_SOURCE_DIR}/tool/html.c) # the rest of tool/ is no library
cbgen_script_test(test_report_browser ${tool} ${scratch}/test_report_browser)
set_property(TEST test_report_browser APPEND PROPERTY ENVIRONMENT "OMP_WAIT_POLICY=passive")
