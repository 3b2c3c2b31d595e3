# SPDX-License-Identifier: Apache-2.0
# A fake CUDA driver and NVRTC in one shared object, which executes generated kernels on the emulator: see
# fake_driver.h. Tests that may use it (cbgen_use_fake_cuda) find it in CBGEN_FAKE_CUDA, and what it compiled
# for equal texts in CBGEN_FAKE_CACHE.
set(fake_emulator ${PROJECT_SOURCE_DIR}/runtime/verify/emulation)
set(fake_generated ${CMAKE_CURRENT_BINARY_DIR}/fake)
set(FAKE_CUDA_CACHE ${CMAKE_CURRENT_BINARY_DIR}/tmp/fake_cache)
file(MAKE_DIRECTORY ${FAKE_CUDA_CACHE})

# fake_text(FILE NAME): the file as bytes, for an array.
function(fake_text file name)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(CONFIGURE OUTPUT ${fake_generated}/${name} CONTENT "${bytes}\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()
fake_text(${CMAKE_CURRENT_SOURCE_DIR}/fake/kernel.h fake_kernel_text.h)

file(GLOB fake_sources CONFIGURE_DEPENDS fake/*.c fake/*.cpp)
# One translation unit, as runtime/verify/host.c has it, whose functions call one another without a table: what they do
# for each access of a kernel is inlined, and takes a fifth less time.
set(fake_emulator_text "")
foreach(name scheduler shared visibility grid memory fiber)
  string(APPEND fake_emulator_text "#include \"${fake_emulator}/${name}.cpp\"\n")
endforeach()
file(CONFIGURE OUTPUT ${fake_generated}/emulator.cpp CONTENT "${fake_emulator_text}")
# Emulated threads have stacks of their own, which only what is not instrumented can switch.
set(fake_sanitized $<$<BOOL:${CBGEN_SANITIZE}>:EMULATION_SANITIZED>)
set_source_files_properties(${fake_generated}/emulator.cpp fake/machine.cpp PROPERTIES
  COMPILE_OPTIONS "-O2;-fno-semantic-interposition;-fno-sanitize=all;-Wno-pedantic;-Wno-missing-field-initializers")

# Tests on it compile kernels one by one, and some run them for long: -Og compiles in less than half of the time of -O1,
# what it makes is about as fast; gold links in half of the time.
find_program(FAKE_LD ld.gold)
mark_as_advanced(FAKE_LD)
set(fake_flags "-std=c++17 -pipe -ffp-contract=off -fno-exceptions -fno-rtti -w -fPIC -shared -Og")
string(APPEND fake_flags "$<$<BOOL:${FAKE_LD}>: -fuse-ld=gold>")
# AddressSanitizer: functions call it for each access, which takes a fifth less time to compile than checks in place in
# those of fewer than 30 accesses, and a tenth more to run; tests compile for longer. What leaves its scope is not
# followed; what lies beside an array is.
set(fake_sanitizer "-fsanitize=address -fno-sanitize-address-use-after-scope")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  string(APPEND fake_sanitizer " --param asan-instrumentation-with-call-threshold=0")
endif()

# What all of them begin with is compiled once for each set of flags, which takes a seventh off the time of each. Its name
# holds its sum, since what was compiled is kept by the text that includes it. Another compiler than GCC reads the text.
file(READ ${fake_emulator}/prelude.h fake_prelude)
string(PREPEND fake_prelude "#define __CUDACC_RTC__\n#line 1 \"prelude.h\"\n")
string(SHA256 fake_sum "${fake_prelude}")
string(SUBSTRING ${fake_sum} 0 32 fake_sum)
set(fake_prelude_path ${fake_generated}/prelude-${fake_sum}.h)
if(NOT EXISTS ${fake_prelude_path})
  file(WRITE ${fake_prelude_path} "${fake_prelude}")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${fake_emulator}/prelude.h)

# fake_read_prelude(TARGET NAME FLAGS): into a file NAME of the folder in which GCC looks for one of its flags.
function(fake_read_prelude target name flags)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(read ${fake_prelude_path}.gch/${name})
    add_custom_command(OUTPUT ${read} COMMAND ${CMAKE_COMMAND} -E make_directory ${fake_prelude_path}.gch
                       COMMAND sh -c "exec \"$0\" $1 -x c++-header \"$2\" -o \"$3\"" ${CMAKE_CXX_COMPILER} "${flags}"
                               ${fake_prelude_path} ${read}
                       DEPENDS ${fake_prelude_path} VERBATIM)
    add_custom_target(${target}_prelude DEPENDS ${read})
    add_dependencies(${target} ${target}_prelude)
  endif()
endfunction()

add_library(fake_cuda MODULE ${fake_sources} ${fake_generated}/emulator.cpp)
set_target_properties(fake_cuda PROPERTIES C_VISIBILITY_PRESET hidden NO_SONAME ON)
target_include_directories(fake_cuda PRIVATE ${PROJECT_SOURCE_DIR} ${fake_generated})
target_compile_definitions(fake_cuda PRIVATE _GNU_SOURCE ${fake_sanitized} FAKE_CXX="${CMAKE_CXX_COMPILER}"
                           FAKE_CXX_FLAGS="${fake_flags}$<$<BOOL:${CBGEN_SANITIZE}>: ${fake_sanitizer}>"
                           FAKE_PRELUDE="${fake_prelude_path}")
fake_read_prelude(fake_cuda usual "${fake_flags}$<$<BOOL:${CBGEN_SANITIZE}>: ${fake_sanitizer}>")
target_link_libraries(fake_cuda PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
# Kernels find the emulator in it; nothing else is theirs. It stays loaded: its thread does.
target_link_options(fake_cuda PRIVATE LINKER:--version-script=${CMAKE_CURRENT_SOURCE_DIR}/fake/fake.map
                    LINKER:-z,nodelete)
set_property(TARGET fake_cuda PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fake/fake.map)

# cbgen_use_fake_cuda(TEST …): for cmocka tests and tests of other kinds. They take no families that may lie beside the
# library: the fake does not run real kernels.
function(cbgen_use_fake_cuda)
  foreach(name IN LISTS ARGN)
    if(TARGET ${name})
      add_dependencies(${name} fake_cuda)
    endif()
    if(TEST ${name})
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_CUDA=$<TARGET_FILE:fake_cuda>"
                   "CBGEN_FAKE_CACHE=${FAKE_CUDA_CACHE}" CBGEN_FAMILIES=)
    endif()
  endforeach()
endfunction()

# cbgen_run_on_fake_cuda(TEST …): for tests of what finds the driver and NVRTC by itself.
function(cbgen_run_on_fake_cuda)
  cbgen_use_fake_cuda(${ARGN})
  foreach(name IN LISTS ARGN)
    if(TEST ${name})
      set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "CBGEN_LIBCUDA=$<TARGET_FILE:fake_cuda>"
                   "CBGEN_NVRTC=$<TARGET_FILE:fake_cuda>")
    endif()
  endforeach()
endfunction()

# cbgen_python_on_fake_cuda(TEST …): likewise, for tests that load libcbgen into Python, which in a build with
# sanitizers must have their run-time library first. What Python itself leaves behind is no leak of ours.
function(cbgen_python_on_fake_cuda)
  cbgen_run_on_fake_cuda(${ARGN})
  if(NOT CBGEN_SANITIZE)
    return()
  endif()
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libasan.so OUTPUT_VARIABLE runtime
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  foreach(name IN LISTS ARGN)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "LD_PRELOAD=${runtime}" "ASAN_OPTIONS=detect_leaks=0")
  endforeach()
endfunction()

cbgen_use_fake_cuda(test_driver test_operator test_bench test_many test_fake_cuda test_device_hash test_device_pack test_packer test_staging test_survey)
cbgen_run_on_fake_cuda(test_clocked test_api test_api_allocator test_api_arguments test_api_batch test_api_cache test_api_checks test_api_complex test_api_complex_solver test_api_copy test_api_epilogue test_api_failures test_api_formats test_api_inspect test_api_large test_api_lp test_api_lp_certificates test_api_lp_fused test_api_lp_known test_api_lp_slabs test_api_many test_api_memory test_api_methods test_api_mixed test_api_save test_api_sites test_api_solver test_api_split test_api_staged test_api_spills test_api_ranges test_api_reorder test_api_streams test_api_symmetric test_api_tiers test_api_tiles test_fork test_memory_room test_modules)

# The tool finds the GPU by itself, compiles, loads, multiplies and checks.
add_test(NAME run_on_fake_cuda COMMAND cbgen_tool run generate:fe3,n=2 --emulate)
cbgen_run_on_fake_cuda(run_on_fake_cuda)
set_property(TEST run_on_fake_cuda APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "OMP_WAIT_POLICY=passive")

# So does the program that measures set-up, which checks that every operator multiplies alike.
add_custom_target(warm_start_for_tests ALL DEPENDS bench_warm_start bench_update)
add_test(NAME warm_start_on_fake_cuda COMMAND bench_warm_start --repeats 2 generate:stencil7,n=22)
cbgen_run_on_fake_cuda(warm_start_on_fake_cuda)
set_property(TEST warm_start_on_fake_cuda APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "OMP_WAIT_POLICY=passive")

# And the one that measures packing kernels of several shapes, which checks what each of them writes.
add_test(NAME update_on_fake_cuda COMMAND bench_update generate:road,n=40,keep=0.6)
cbgen_run_on_fake_cuda(update_on_fake_cuda)
set_property(TEST update_on_fake_cuda APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "OMP_WAIT_POLICY=passive")

# And the one that packs on the device and on the host, and compares what it has then.
add_custom_target(device_pack_for_tests ALL DEPENDS bench_device_pack)
add_test(NAME device_pack_on_fake_cuda COMMAND bench_device_pack --repeats 1 generate:fe3,n=3 generate:stencil7,n=6)
cbgen_run_on_fake_cuda(device_pack_on_fake_cuda)
set_property(TEST device_pack_on_fake_cuda APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "OMP_WAIT_POLICY=passive")

# And the one that measures linear programs, with cuSPARSE and without.
add_custom_target(lp_for_tests ALL DEPENDS bench_lp fake_cusparse)
foreach(library $<TARGET_FILE:fake_cusparse> /nowhere/libcusparse.so)
  set(name lp_on_fake_cuda)
  if(library STREQUAL "/nowhere/libcusparse.so")
    set(name lp_without_cusparse)
  endif()
  add_test(NAME ${name} COMMAND bench_lp --products 1 generate:random,rows=20,cols=40,density=0.2 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  cbgen_run_on_fake_cuda(${name})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "OMP_WAIT_POLICY=passive" "CBGEN_CACHE_DIR="
               "CBGEN_CUSPARSE=${library}")
endforeach()
set_property(TEST lp_on_fake_cuda PROPERTY FAIL_REGULAR_EXPRESSION "without cuSPARSE")
set_property(TEST lp_without_cusparse PROPERTY FAIL_REGULAR_EXPRESSION "cuSPARSE: [a-z]+-")

# And the one that measures solvers, beside cuSPARSE and cuBLAS. Its own kernels (solve_parts.cu) run on a GPU only.
add_custom_target(solve_for_tests ALL DEPENDS bench_solve bench_heads fake_cublas)
add_test(NAME heads_on_fake_cuda COMMAND bench_heads generate:stencil7,n=6 generate:fe3,n=3)
cbgen_run_on_fake_cuda(heads_on_fake_cuda)
set_property(TEST heads_on_fake_cuda APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "OMP_WAIT_POLICY=passive"
             "CBGEN_CACHE_DIR=")
add_test(NAME solve_on_fake_cuda COMMAND bench_solve --forms auto,grid:3,cluster:2 cg:generate:stencil7,n=5 bicgstab:generate:fe3,n=2
         gmres:generate:stencil7,n=5 pagerank:generate:rmat,scale=5 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
cbgen_run_on_fake_cuda(solve_on_fake_cuda)
set_property(TEST solve_on_fake_cuda APPEND PROPERTY ENVIRONMENT "CBGEN_FAKE_STRICT=1" "OMP_WAIT_POLICY=passive"
             "CBGEN_CACHE_DIR=" "CBGEN_FAKE_SET=unrun=1" "CBGEN_CUSPARSE=$<TARGET_FILE:fake_cusparse>"
             "CBGEN_CUBLAS=$<TARGET_FILE:fake_cublas>")
set_property(TEST solve_on_fake_cuda PROPERTY FAIL_REGULAR_EXPRESSION "without (parts|cuSPARSE)")
