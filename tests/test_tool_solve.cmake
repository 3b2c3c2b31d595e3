# SPDX-License-Identifier: Apache-2.0
# `cbgen solve` from outside, on the fake GPU.
cbgen_script_test(test_tool_solve ${tool} ${scratch}/test_tool_solve)
cbgen_run_on_fake_cuda(test_tool_solve)
