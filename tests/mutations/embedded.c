// SPDX-License-Identifier: Apache-2.0
/* Stands in place of base/embedded.c in the tree that mutate.py builds: which mutant runs, and a folder whose files
 * (CBGEN_MUTANTS/NUMBER/templates/…) go before the embedded ones. */
#include "base/embedded.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int cb_mutant;
static struct cb_embedded_file mutated[1];

static void read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) abort();
  const long length = ftell(file);
  char *text = calloc(1, (size_t)length + 1);
  rewind(file);
  if (!text || fread(text, 1, (size_t)length, file) != (size_t)length) abort();
  fclose(file);
  mutated->text = text;
  mutated->length = (size_t)length;
}

/* CBGEN_MUTANT is a number, or NUMBER:FILE for a mutant of an embedded file. */
__attribute__((constructor)) static void choose_mutant(void) {
  const char *chosen = getenv("CBGEN_MUTANT"), *folder = getenv("CBGEN_MUTANTS"), *colon;
  char path[4096];
  if (!chosen) return;
  cb_mutant = atoi(chosen);
  if (!(colon = strchr(chosen, ':'))) return;
  snprintf(path, sizeof path, "%s/%d/%s", folder ? folder : "", cb_mutant, colon + 1);
  mutated->name = colon + 1;
  read_file(path);
}

const struct cb_embedded_file *cb_embedded_find(const char *name) {
  if (mutated->name && !strcmp(mutated->name, name)) return mutated;
  for (const struct cb_embedded_file *file = cb_embedded_files; file->name; file++)
    if (!strcmp(file->name, name)) return file;
  return NULL;
}
