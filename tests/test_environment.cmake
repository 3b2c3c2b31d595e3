# SPDX-License-Identifier: Apache-2.0
# What test_environment.c copies and starts with other rights: a program that reads the environment, and a library that
# must not be loaded.
add_executable(environment_asker privileged/asker.c)
target_link_libraries(environment_asker PRIVATE cbgen_internal)
add_library(environment_trap MODULE privileged/trap.c)
set_target_properties(environment_trap PROPERTIES NO_SONAME ON)
target_compile_options(environment_trap PRIVATE -fno-sanitize=all)
target_link_options(environment_trap PRIVATE -fno-sanitize=all)
add_dependencies(test_environment environment_asker environment_trap)
set_property(TEST test_environment APPEND PROPERTY ENVIRONMENT "CBGEN_TEST_ASKER=$<TARGET_FILE:environment_asker>"
             "CBGEN_TEST_TRAP=$<TARGET_FILE:environment_trap>")
