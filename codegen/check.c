// SPDX-License-Identifier: Apache-2.0
/* The check of generated device text: see check.h. */
#include "codegen/check.h"

#include "base/text.h"

#include <string.h>

/* Names with two leading underscores that the emulation defines. */
static const char *const allowed[] = {
    "__launch_bounds__", "__grid_constant__", "__restrict__",    "__device__",        "__shared__",      "__shfl_sync",
    "__shfl_xor_sync",   "__shfl_down_sync", "__shfl_up_sync",   "__ballot_sync",   "__any_sync",
    "__all_sync",        "__syncwarp",      "__syncthreads",     "__threadfence",   "__popc",
    "__popcll",          "__ffs",           "__clz",             "__clzll",
};

static const char *const forbidden[] = {"asm", "blockDim", "gridDim", "warpSize", "clock64", "printf", "malloc"};

static int listed(const char *const *list, size_t count, const char *word, size_t length) {
  for (size_t i = 0; i < count; i++)
    if (list[i][0] == word[0] && strlen(list[i]) == length && !memcmp(list[i], word, length)) return 1;
  return 0;
}

static int is_bad(const char *word, size_t length) {
  if (length > 2 && word[0] == '_' && word[1] == '_')
    return !listed(allowed, sizeof allowed / sizeof *allowed, word, length);
  if (length == 9 && !memcmp(word, "threadIdx", 9)) return memcmp(word + 9, ".x", 2) != 0;
  if (length == 8 && !memcmp(word, "blockIdx", 8)) return memcmp(word + 8, ".x", 2) != 0;
  return listed(forbidden, sizeof forbidden / sizeof *forbidden, word, length);
}

enum cb_status cb_check_intrinsics(const char *text, struct cb_diag *diag) {
  for (int line = 1; *text; text++) {
    if (*text == '\n') line++;
    if (text[0] == '/' && text[1] == '/') {
      const char *const end = strchr(text, '\n');
      text = end ? end - 1 : text + strlen(text) - 1;
    }
    if (!cb_is_name(*text)) continue; /* a number is as good as a name */
    size_t length = 1;
    while (cb_is_name(text[length])) length++;
    if (is_bad(text, length))
      return cb_fail(diag, CB_ERR_INTERNAL,
                     "generated text uses '%.*s' (line %d behind the prelude), which the host emulation lacks",
                     (int)length, text, line);
    text += length - 1;
  }
  return CB_OK;
}
