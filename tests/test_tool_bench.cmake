# SPDX-License-Identifier: Apache-2.0
# The scripts of bench/, on results measured on the fake GPU against two fakes of cuSPARSE.
cbgen_script_test(test_tool_bench ${tool} ${scratch}/test_tool_bench)
cbgen_run_on_fake_cuda(test_tool_bench)
set_property(TEST test_tool_bench APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_CUSPARSE=$<TARGET_FILE:fake_cusparse>"
             "CBGEN_FAKE_CUSPARSE_120603=$<TARGET_FILE:fake_cusparse_120603>" "OMP_WAIT_POLICY=passive")

# A baseline plug-in on the memory of the fake driver.
add_library(fake_baseline MODULE fake_baseline.c)
set_target_properties(fake_baseline PROPERTIES C_VISIBILITY_PRESET default)
target_include_directories(fake_baseline PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(fake_baseline PRIVATE _GNU_SOURCE)
target_link_libraries(fake_baseline PRIVATE ${CMAKE_DL_LIBS})
set_property(TEST test_tool_bench APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_BASELINE=$<TARGET_FILE:fake_baseline>")

# The tables of the papers, on the fake GPU; with the same plug-in.
cbgen_script_test(test_paper ${tool} ${scratch}/test_paper)
cbgen_run_on_fake_cuda(test_paper)
set_property(TEST test_paper APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_CUSPARSE=$<TARGET_FILE:fake_cusparse>"
             "CBGEN_FAKE_BASELINE=$<TARGET_FILE:fake_baseline>" "OMP_WAIT_POLICY=passive")
