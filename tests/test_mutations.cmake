# SPDX-License-Identifier: Apache-2.0
# Planted bugs (tests/mutations): every one still names its place, which is an operand or a statement, and tests catch a
# sample of them, another one for every commit.
set(mutate tests/mutations/mutate.py --build ${CMAKE_CURRENT_BINARY_DIR}/tmp/mutations --cc ${CMAKE_C_COMPILER}
    --cxx ${CMAKE_CXX_COMPILER} --python ${CBGEN_TEST_PYTHON})
add_test(NAME mutations_have_their_places COMMAND Python3::Interpreter ${mutate} --check
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME mutations_replace_operands COMMAND Python3::Interpreter -m doctest operand.py
         WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/mutations)
add_test(NAME mutation_sample COMMAND Python3::Interpreter ${mutate} --sample 10 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(mutation_sample PROPERTIES LABELS "kernels;long" TIMEOUT 1200 PROCESSORS 2)
