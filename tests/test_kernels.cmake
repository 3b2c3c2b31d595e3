# SPDX-License-Identifier: Apache-2.0
# The tests that compile kernels for the host: they use all processors themselves, and need a C++ compiler with its
# sanitizers' runtime.
set_tests_properties(test_kernels_random test_kernels_shapes PROPERTIES LABELS "kernels;long" PROCESSORS 2)
set_tests_properties(test_dia test_fuse test_handover test_merge test_sell test_emulation test_verify test_wide PROPERTIES LABELS kernels PROCESSORS 2)

# Run by hand, in a build without sanitizers.
add_executable(huge_matrix EXCLUDE_FROM_ALL ${CMAKE_CURRENT_SOURCE_DIR}/huge_matrix.c)
target_link_libraries(huge_matrix PRIVATE cbgen_internal)
