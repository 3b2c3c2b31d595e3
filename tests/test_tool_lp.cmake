# SPDX-License-Identifier: Apache-2.0
# `cbgen lp` from outside, on the fake GPU.
cbgen_script_test(test_tool_lp ${tool} ${scratch}/test_tool_lp)
cbgen_run_on_fake_cuda(test_tool_lp)
