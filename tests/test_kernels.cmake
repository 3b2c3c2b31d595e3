# SPDX-License-Identifier: Apache-2.0
# The tests that compile kernels for the host: they need a C++ compiler with its sanitizers' runtime. They compile with
# all processors but plan and judge with one, so that another test beside them fills the gaps.
set_tests_properties(test_kernels_random test_kernels_shapes PROPERTIES LABELS "kernels;long")
set_tests_properties(test_dia test_fuse test_handover test_merge test_sell test_emulation test_verify test_wide PROPERTIES LABELS kernels)

# Run by hand, in a build without sanitizers.
add_executable(huge_matrix EXCLUDE_FROM_ALL ${CMAKE_CURRENT_SOURCE_DIR}/huge_matrix.c)
target_link_libraries(huge_matrix PRIVATE cbgen_internal)
