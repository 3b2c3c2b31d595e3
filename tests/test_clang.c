// SPDX-License-Identifier: Apache-2.0
/* verify --clang: kernels of all recipes break no rule, and a breach of each rule that is planted in a kernel is found in
 * its line. */
#include "runtime/verify/clang/clang.h"
#include "tests/layouts.h"
#include "tests/recipes.h"
#include "tests/skips.h"

