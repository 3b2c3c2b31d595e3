# SPDX-License-Identifier: Apache-2.0
# docs/ADDING-A-LAYOUT.md, executed: builds a copy of the tree with the layout that it adds.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME test_adding_a_layout COMMAND Python3::Interpreter tests/test_adding_a_layout.py
         ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_adding_a_layout WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(test_adding_a_layout PROPERTIES LABELS "kernels;long"
                     ENVIRONMENT "CC=${CMAKE_C_COMPILER};CXX=${CMAKE_CXX_COMPILER};CBGEN_CACHE_DIR=;OMP_WAIT_POLICY=passive")
