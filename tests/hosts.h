// SPDX-License-Identifier: Apache-2.0
/* Hosts that a test program opens once for all of its tests: each compiles the emulation, which takes longer than most
 * kernels do. */
#ifndef CBGEN_TESTS_HOSTS_H
#define CBGEN_TESTS_HOSTS_H

#include "runtime/verify/verify.h"

/* clang++ takes half the time of g++, with which every sixteenth of test_kernels_shapes and the corpus are compiled. */
const char *fast_compiler(void);
const char *usual_compiler(void);

/* A host with these options, open until the program ends. The compiler that they name is a wish: without it another
 * one serves. */
struct cb_host *kernel_host(const struct cb_host_options *options);

/* cb_verify on such a host. */
enum cb_status verify_kernel(const struct cb_verify_case *one, const struct cb_verify_options *options,
                             struct cb_verify_report *report, struct cb_diag *diag);

#endif
