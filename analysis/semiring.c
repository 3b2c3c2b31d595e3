// SPDX-License-Identifier: Apache-2.0
/* Words for semirings: see semiring.h. */
#include "analysis/semiring.h"

#include <stddef.h>

const char *const cb_semiring_names[CB_SEMIRINGS + 1] = {"plus-times", "min-plus", "max-times", "or-and", NULL};

const char *cb_semiring_section(enum cb_semiring semiring) {
  static const char *const sections[CB_SEMIRINGS] = {"plus_times", "min_plus", "max_times", "or_and"};
  return sections[semiring];
}

const char *cb_semiring_equation(enum cb_semiring semiring, int form) {
  enum { FORMS = 3 }; /* of enum cb_form */
  static const char *const equations[CB_SEMIRINGS][FORMS] = {
      {"y = A·x", "y += A·x", "y = αA·x + βy"},
      {"y = A·x over (min, +)", "y = min(y, A·x) over (min, +)", "y = A·x or min(y, A·x) over (min, +)"},
      {"y = A·x over (max, ·)", "y = max(y, A·x) over (max, ·)", "y = A·x or max(y, A·x) over (max, ·)"},
      {"y = A·x over (or, and)", "y = y or A·x over (or, and)", "y = A·x or y or A·x over (or, and)"},
  };
  return equations[semiring][form];
}
