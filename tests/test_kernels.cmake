# SPDX-License-Identifier: Apache-2.0
# The tests that compile kernels for the host: they use all processors themselves, and need a C++ compiler with its
# sanitizers' runtime.
set_tests_properties(test_kernels_random test_kernels_shapes PROPERTIES LABELS "kernels;long" PROCESSORS 2)
set_tests_properties(test_dia test_fuse test_handover test_merge test_emulation test_verify PROPERTIES LABELS kernels PROCESSORS 2)
