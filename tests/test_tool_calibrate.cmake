# SPDX-License-Identifier: Apache-2.0
# Calibrations, tuning, and `cbgen calibrate` from outside, on the fake GPU.
cbgen_use_fake_cuda(test_calibration test_tune)
cbgen_script_test(test_tool_calibrate ${tool} ${scratch}/test_tool_calibrate)
cbgen_run_on_fake_cuda(test_tool_calibrate test_api_tune)
