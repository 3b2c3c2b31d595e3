# SPDX-License-Identifier: Apache-2.0
# The programs that check libcbgen on a GPU through its public header (bench/api_check.c, bench/soak.c), in a short form
# on the fake CUDA, whose streams do nothing before something waits for them. The soak's matrices are few, so that what
# the fake compiles for them is kept; it counts every byte of the GPU's memory.
add_custom_target(native_checks_for_tests ALL DEPENDS bench_api_check bench_soak)

# What AddressSanitizer keeps of freed memory is no growth; leaks are told by LeakSanitizer then.
set(soak_growth 48)
if(CBGEN_SANITIZE)
  set(soak_growth 1024)
endif()
add_test(NAME api_check_on_fake_cuda COMMAND bench_api_check --quick)
add_test(NAME soak_on_fake_cuda COMMAND bench_soak 6 --entries 3000 --distinct 20 --host ${soak_growth}
         --device 0)
foreach(name api_check_on_fake_cuda soak_on_fake_cuda)
  cbgen_run_on_fake_cuda(${name})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "CBGEN_FAKE_SET=devices=2,lazy=1"
               "OMP_WAIT_POLICY=passive")
endforeach()

# A few hundred matrices of the campaign (bench/campaign.c), and results that it must find wrong.
add_custom_target(campaign_for_tests ALL DEPENDS bench_campaign)
add_test(NAME test_campaign COMMAND Python3::Interpreter tests/test_campaign.py $<TARGET_FILE:bench_campaign>
         ${CMAKE_CURRENT_BINARY_DIR}/tmp/test_campaign WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
cbgen_run_on_fake_cuda(test_campaign)
set_property(TEST test_campaign APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "CBGEN_FAKE_SET=lazy=1" "OMP_WAIT_POLICY=passive")
