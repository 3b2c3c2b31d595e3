# SPDX-License-Identifier: Apache-2.0
# cbgen_add_kernel(TARGET MATRIX FILE… [NAME NAME] [ARCH sm_NN] [DATA_FILE] [OPTIONS OPTION…])
#
# Makes a kernel for each matrix file (or generate:SHAPE) when TARGET is built, and again when the file changes, and adds
# it to the target's sources, which are compiled as CUDA. The target's own sources include NAME_kernel.h, which declares
# in plain C what there is (cmake/kernel.h.in):
#
#   NAME_kernel_create, NAME_kernel_multiply, NAME_kernel_destroy
#
#   NAME       of the functions and files; a C identifier. Otherwise the file's name up to its first dot. One matrix only.
#   ARCH       GPU that the kernel is planned for; otherwise the first of the target's CUDA_ARCHITECTURES, else sm_90
#   DATA_FILE  the matrix's data are not compiled into the program, which is meant for up to some MiB, but lie in
#              NAME.cbd, whose name NAME_kernel_create takes. CBGEN_KERNEL_DATA of the target lists such files.
#   OPTIONS    of the analysis, as the tool takes them: --type=f32 --recipe=sell
#
# A custom target gets the files and compiles nothing.

function(cbgen_add_kernel target)
  set(templates ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
  cmake_parse_arguments(PARSE_ARGV 1 arg "DATA_FILE" "NAME;ARCH" "MATRIX;OPTIONS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "cbgen_add_kernel: '${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}' is not understood")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "cbgen_add_kernel: there is no target '${target}'")
  endif()
  list(LENGTH arg_MATRIX count)
  if(count EQUAL 0 OR (arg_NAME AND NOT count EQUAL 1))
    message(FATAL_ERROR "cbgen_add_kernel: MATRIX takes a file, or several without NAME")
  endif()
  if(arg_OPTIONS MATCHES "--(form|embed|name|arch|output|emit)")
    message(FATAL_ERROR "cbgen_add_kernel: '--${CMAKE_MATCH_1}' is no option of the analysis")
  endif()
  get_target_property(type ${target} TYPE)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT type STREQUAL UTILITY AND NOT CUDA IN_LIST languages)
    message(FATAL_ERROR "cbgen_add_kernel: the project needs the language CUDA: project(… LANGUAGES CUDA)")
  endif()
  if(NOT arg_ARCH)
    get_target_property(architectures ${target} CUDA_ARCHITECTURES)
    set(arg_ARCH sm_90)
    if(architectures MATCHES "^([0-9]+)")
      set(arg_ARCH sm_${CMAKE_MATCH_1})
    endif()
  endif()
  foreach(matrix IN LISTS arg_MATRIX)
    cbgen_add_one_kernel("${matrix}")
  endforeach()
endfunction()

# With what cbgen_add_kernel has found out.
macro(cbgen_add_one_kernel matrix)
  set(file "${matrix}")
  set(depends)
  if(NOT file MATCHES "^generate:")
    get_filename_component(file "${file}" ABSOLUTE)
    set(depends "${file}")
  endif()
  set(CBGEN_NAME ${arg_NAME})
  if(NOT CBGEN_NAME)
    string(REGEX REPLACE "^generate:|,.*$" "" CBGEN_NAME "${matrix}")
    get_filename_component(CBGEN_NAME "${CBGEN_NAME}" NAME)
    string(REGEX REPLACE "\\..*$" "" CBGEN_NAME "${CBGEN_NAME}")
    string(MAKE_C_IDENTIFIER "${CBGEN_NAME}" CBGEN_NAME)
  endif()
  if(NOT CBGEN_NAME MATCHES "^[A-Za-z][A-Za-z0-9_]*$")
    message(FATAL_ERROR "cbgen_add_kernel: '${CBGEN_NAME}' is no C identifier; NAME says another")
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/cbgen/${target})
  set(text ${folder}/${CBGEN_NAME}.cu)
  set(outputs ${text})
  set(embed always)
  set(CBGEN_HAS_DATA_FILE 0)
  if(arg_DATA_FILE)
    list(APPEND outputs ${folder}/${CBGEN_NAME}.cbd)
    set(embed never)
    set(CBGEN_HAS_DATA_FILE 1)
    set_property(TARGET ${target} APPEND PROPERTY CBGEN_KERNEL_DATA ${folder}/${CBGEN_NAME}.cbd)
  endif()
  configure_file(${templates}/kernel.h.in ${folder}/${CBGEN_NAME}_kernel.h @ONLY)
  configure_file(${templates}/kernel.cu.in ${folder}/${CBGEN_NAME}_kernel.cu @ONLY)
  add_custom_command(
    OUTPUT ${outputs} VERBATIM
    COMMAND cbgen::tool generate "${file}" -o ${text} --name=${CBGEN_NAME} --arch=${arg_ARCH} --form=axpby
            --embed=${embed} ${arg_OPTIONS} --quiet
    DEPENDS ${depends} COMMENT "Making the kernel of ${matrix} for ${arg_ARCH}")
  # the text is a part of NAME_kernel.cu: products are added as it says, and nothing else is fused
  set_source_files_properties(${text} PROPERTIES HEADER_FILE_ONLY TRUE GENERATED TRUE)
  set_source_files_properties(${folder}/${CBGEN_NAME}_kernel.cu PROPERTIES LANGUAGE CUDA OBJECT_DEPENDS "${text}"
                              COMPILE_OPTIONS "-fmad=false")
  target_sources(${target} PRIVATE ${outputs} ${folder}/${CBGEN_NAME}_kernel.cu ${folder}/${CBGEN_NAME}_kernel.h)
  if(NOT type STREQUAL UTILITY)
    target_include_directories(${target} PRIVATE ${folder})
  endif()
endmacro()
