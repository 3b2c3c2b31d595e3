# SPDX-License-Identifier: Apache-2.0
# The predictor's tables against the trainer, and against the measurements that they come from.
add_executable(choose_scores choose_scores.c)
target_link_libraries(choose_scores PRIVATE cbgen_internal)
add_test(NAME test_choose_table COMMAND Python3::Interpreter tests/test_choose_table.py $<TARGET_FILE:choose_scores>
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
