# SPDX-License-Identifier: Apache-2.0
# `cbgen why` from outside, with and without the fake GPU.
cbgen_script_test(test_tool_why ${tool})
cbgen_run_on_fake_cuda(test_tool_why)
set_property(TEST test_tool_why APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "OMP_WAIT_POLICY=passive")
