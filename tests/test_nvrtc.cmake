# SPDX-License-Identifier: Apache-2.0
# Where there are sanitizers, NVRTC stays apart from them: see nvrtc_apart.c.
if(CBGEN_SANITIZE)
  foreach(name IN ITEMS corpus test_nvrtc test_program test_wide)
    target_sources(${name} PRIVATE nvrtc_apart.c)
    target_link_options(${name} PRIVATE LINKER:--wrap=dlopen)
  endforeach()
endif()
