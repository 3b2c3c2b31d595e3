// SPDX-License-Identifier: Apache-2.0
/* What a compiler does not check of a kernel's text. libclang, opened at run time, reads the text as CUDA without a
 * CUDA toolkit: as the device sees it (NVRTC's view, without the host part) and as the host does. Its diagnostics are
 * findings, and so is each breach of a rule, looked for on the syntax tree:
 *
 *   atomics    Atomics on what is no integer stand only in commit_atomic and add_sum_atomic, and in those only when the
 *              plan permits them.
 *   y          y is named only in commit, commit_more and commit_atomic; where there are atomics, also in the kernel
 *              that prepares its rows for them. x is named only in what load_input is called with.
 *   arrays     An array of a region that has an accessor is named in its accessors alone: functions NAME and
 *              NAME_vector, for `values` value, value_cached, value_vector and value_of. The same holds for its table
 *              when it is baked. Nothing is stored through any of them. (Bytes that hold several kinds of data have no
 *              accessor.)
 *   constants  Every constant (constexpr, outside functions) is used, and says behind it where it comes from. With a
 *              plan at hand each number that a region's constants are given is the plan's, by name and value.
 *   barriers   No __syncthreads under a condition that may differ within a thread block, no __syncwarp under one that
 *              may differ within a warp; neither behind a return that only some of the threads take (uniform.c).
 *   bounds     No condition of a loop is read at run time, from an array or a parameter of the kernel, and the same in
 *              all threads of all launches: such a number could stand in the text.
 */
#ifndef CBGEN_RUNTIME_VERIFY_CLANG_CLANG_H
#define CBGEN_RUNTIME_VERIFY_CLANG_CLANG_H

#include "analysis/plan.h"
#include "base/status.h"

enum { CB_CLANG_FINDINGS = 32 };

struct cb_clang_finding {
  const char *rule; /* of the list above; or "device" or "host": a diagnostic of that view */
  int line, column;
  char message[240];
};

struct cb_clang_report {
  char library[128];  /* its version as libclang tells it */
  int findings_count; /* all; the first CB_CLANG_FINDINGS are kept, by line within a rule */
  struct cb_clang_finding findings[CB_CLANG_FINDINGS];
  int functions, accesses, constants, barriers, loops; /* that the rules looked at */
};

struct cb_clang;

/* `path`: a libclang (14 to 19) or its folder; NULL: $CBGEN_LIBCLANG, else the newest that the loader or Debian's
 * folders have. CB_ERR_MISSING says what to install. */
enum cb_status cb_clang_open(struct cb_clang **clang, const char *path, struct cb_diag *diag);
void cb_clang_close(struct cb_clang *clang); /* NULL is accepted */

/* Reads `text`, a whole kernel.cu. `plan` is that of the text, or NULL. CB_OK with findings in the report; other
 * statuses: it could not be read. */
enum cb_status cb_clang_check(struct cb_clang_report *report, const struct cb_clang *clang, const char *text,
                              const struct cb_plan *plan, struct cb_diag *diag);

#endif
