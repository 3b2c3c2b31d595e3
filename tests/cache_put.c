// SPDX-License-Identifier: Apache-2.0
/* Puts one entry into a cache, for tests that drive the tool from outside.
 *
 *   cache_put DIRECTORY KEY MATRIX TAG=TEXT...        KEY: 32 hexadecimal digits; exits 0 when it was stored */
#include "runtime/cache/cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  struct cb_cache *cache;
  struct cb_diag diag = {0};
  struct cb_cache_section sections[CB_CACHE_SECTIONS] = {{"", NULL, 0}};
  char half[17] = "";
  if (argc < 4 || argc - 4 > CB_CACHE_SECTIONS || strlen(argv[2]) != 32) return 2;
  memcpy(half, argv[2], 16);
  const struct cb_hash key = {strtoull(half, NULL, 16), strtoull(argv[2] + 16, NULL, 16)};
  for (int i = 4; i < argc; i++) {
    char *text = strchr(argv[i], '=');
    if (!text) return 2;
    *text++ = 0;
    struct cb_cache_section *section = &sections[i - 4];
    snprintf(section->tag, sizeof section->tag, "%s", argv[i]);
    section->bytes = text;
    section->length = (int64_t)strlen(text);
  }
  const struct cb_cache_options options = {.directory = argv[1]};
  const struct cb_cache_label label = {argv[3], "sm_90 NVIDIA H200", NULL};
  cb_cache_open(&cache, &options, &diag);
  const enum cb_cache_outcome outcome = cb_cache_put(cache, key, &label, sections, argc - 4, &diag);
  cb_cache_close(cache);
  if (outcome == CB_CACHE_STORED) return 0;
  fprintf(stderr, "cache_put: %s (%s)\n", diag.message, cb_cache_outcome_name(outcome));
  return 1;
}
