# SPDX-License-Identifier: Apache-2.0
# The scripts of bench/, on results measured on the fake GPU against two fakes of cuSPARSE.
cbgen_script_test(test_tool_bench ${tool} ${scratch}/test_tool_bench)
cbgen_run_on_fake_cuda(test_tool_bench)
set_property(TEST test_tool_bench APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_CUSPARSE=$<TARGET_FILE:fake_cusparse>"
             "CBGEN_FAKE_CUSPARSE_120603=$<TARGET_FILE:fake_cusparse_120603>" "OMP_WAIT_POLICY=passive")
