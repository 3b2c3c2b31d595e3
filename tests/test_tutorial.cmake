# SPDX-License-Identifier: Apache-2.0
# What the documents say, done.
cbgen_script_test(test_tutorial ${tool} ${scratch}/test_tutorial)
set_property(TEST test_tutorial APPEND PROPERTY ENVIRONMENT "OMP_WAIT_POLICY=passive")
