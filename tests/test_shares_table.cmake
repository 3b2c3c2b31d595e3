# SPDX-License-Identifier: Apache-2.0
# The tables of an extraction's shares against the trainer, and the search that makes labels, on the fake GPU.
add_executable(shares ${PROJECT_SOURCE_DIR}/bench/shares.c ${PROJECT_SOURCE_DIR}/bench/trials.c)
target_link_libraries(shares PRIVATE cbgen_internal)
add_test(NAME test_shares_table COMMAND Python3::Interpreter tests/test_shares_table.py $<TARGET_FILE:choice> $<TARGET_FILE:shares>
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
cbgen_run_on_fake_cuda(test_shares_table)
add_test(NAME test_shares_search COMMAND Python3::Interpreter tests/test_shares_search.py WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
