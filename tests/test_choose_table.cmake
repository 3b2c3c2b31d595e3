# SPDX-License-Identifier: Apache-2.0
# The predictor's tables against the trainer, and against the measurements that they come from.
add_executable(choice ${PROJECT_SOURCE_DIR}/bench/choice.c)
target_link_libraries(choice PRIVATE cbgen_internal)
add_test(NAME test_choose_table COMMAND Python3::Interpreter tests/test_choose_table.py $<TARGET_FILE:choice>
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
