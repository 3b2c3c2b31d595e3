// SPDX-License-Identifier: Apache-2.0
/* What the environment asks of a compilation that the application knows nothing of: see compile.h and docs/library.md.
 *
 *   CBGEN_OPTIONS=NAME=VALUE,…   options of the analysis, over those of the context
 *   CBGEN_DUMP=DIR               kernels' texts as DIR/KEY.cu, compiled under that name with line information
 *   CBGEN_OVERRIDE=DIR           DIR/KEY.cu in place of the kernel of that key
 *
 * KEY is cbgen_operator_key, the digits in the names of the kernels. */
#include "base/environment.h"
#include "base/file.h"
#include "base/memory.h"
#include "runtime/api/compile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "" is as good as not set. */
static const char *folder(const char *variable) {
  const char *value = cb_environment(variable);
  return value && *value ? value : NULL;
}

int cb_inspects(void) {
  struct cb_checks_asked checks;
  return folder("CBGEN_DUMP") || folder("CBGEN_OVERRIDE") || (!cb_checks_read(&checks, NULL) && checks.bounds);
}

/* ---- options */

/* Behind the setting at `at`: at a comma that another "NAME=" follows, for values may have commas, or at the end. */
static const char *end_of_setting(const char *at) {
  for (at += strcspn(at, ","); *at; at += 1 + strcspn(at + 1, ",")) {
    const size_t word = strcspn(at + 1, "=,");
    if (at[1 + word] == '=') return at;
  }
  return at;
}

/* What x, y and the values are is the application's: with others it would hand over the wrong vectors. */
static int is_the_applications(const char *name) {
  static const char *const names[] = {"type", "form", "semiring", "conjugate", "values"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i], name)) return 1;
  return 0;
}

static enum cb_status set_one(struct cb_options *options, const char *setting, size_t length, struct cb_diag *diag) {
  char name[128];
  struct cb_diag why = {0};
  snprintf(name, sizeof name, "%.*s", (int)length, setting);
  char *value = strchr(name, '=');
  if (length >= sizeof name || !value)
    return cb_fail(diag, CB_ERR_ARGUMENT, "CBGEN_OPTIONS: '%s' is not NAME=VALUE", name);
  *value++ = 0;
  if (is_the_applications(name))
    return cb_fail(diag, CB_ERR_ARGUMENT, "CBGEN_OPTIONS: '%s' is the application's to say", name);
  const enum cb_status s = cb_context_option(options, name, value, &why);
  return s ? cb_fail(diag, s, "CBGEN_OPTIONS: %s", why.message) : CB_OK;
}

enum cb_status cb_environment_options(struct cb_options *options, const struct cbgen_context *context,
                                      struct cb_diag *diag) {
  const char *settings = cb_environment("CBGEN_OPTIONS");
  enum cb_status s = CB_OK;
  if (!settings || !*settings) return CB_OK;
  cb_warn(context, "CBGEN_OPTIONS: %s", settings);
  while (!s && *settings) {
    const char *end = end_of_setting(settings);
    s = set_one(options, settings, (size_t)(end - settings), diag);
    settings = *end ? end + 1 : end;
  }
  return s;
}

/* ---- kernels */

/* DIR/KEY.cu, absolute, since tools look for it from elsewhere. 0: the path does not exist, or is too long. */
static int path_of(char path[CB_INSPECTION_PATH], const char *directory, const struct cb_made *made) {
  static const char prefix[] = "cbgen_";
  const char *key = strncmp(made->symbol, prefix, strlen(prefix)) ? made->symbol : made->symbol + strlen(prefix);
  char *absolute = realpath(directory, NULL);
  if (!absolute) return 0;
  const int length = snprintf(path, CB_INSPECTION_PATH, "%s/%s.cu", absolute, key);
  free(absolute);
  if (length < CB_INSPECTION_PATH) return 1;
  errno = ENAMETOOLONG;
  return 0;
}

/* The file's text in place of the kernel's. */
static enum cb_status take_text(struct cb_made *made, const char *path, struct cb_diag *diag) {
  struct cb_mapping mapping;
  struct cb_diag why = {0};
  struct cb_text text = {0};
  enum cb_status s = cb_file_map(&mapping, path, &why);
  if (s) return cb_fail(diag, s, "CBGEN_OVERRIDE: %s", why.message);
  if (memchr(mapping.bytes, 0, mapping.length))
    s = cb_fail(diag, CB_ERR_FORMAT, "CBGEN_OVERRIDE: '%s' is no text: it holds a NUL", path);
  else if (!memmem(mapping.bytes, mapping.length, made->symbol, strlen(made->symbol)))
    s = cb_fail(diag, CB_ERR_FORMAT, "CBGEN_OVERRIDE: '%s' does not define kernel '%s'", path, made->symbol);
  if (!s) cb_text_add_bytes(&text, mapping.bytes, mapping.length);
  if (!s && text.failed) s = cb_fail_memory(diag, "a kernel's text", mapping.length);
  if (!s) {
    const int64_t length = (int64_t)text.length;
    cb_source_release(&made->source);
    made->source = (struct cb_source){.text = cb_text_detach(&text), .length = length};
    const char *body = cb_source_behind_prelude(made->source.text);
    made->source.body = body ? body - made->source.text : 0;
  }
  cb_text_release(&text);
  cb_file_unmap(&mapping);
  return s;
}

static enum cb_status replace(struct cb_inspection *inspection, const struct cbgen_context *context,
                              struct cb_made *made, struct cb_diag *diag) {
  const char *directory = folder("CBGEN_OVERRIDE");
  if (!directory) return CB_OK;
  if (!path_of(inspection->path, directory, made)) {
    cb_warn(context, "CBGEN_OVERRIDE: '%s' is of no use: %s", directory, strerror(errno));
    return CB_OK;
  }
  if (access(inspection->path, F_OK)) {
    cb_log(context, "CBGEN_OVERRIDE: there is no '%s'", inspection->path);
    return CB_OK;
  }
  const enum cb_status s = take_text(made, inspection->path, diag);
  if (s) return s;
  cb_warn(context, "CBGEN_OVERRIDE: kernel %s is what '%s' says", made->symbol, inspection->path);
  inspection->is_replaced = inspection->has_file = 1;
  return CB_OK;
}

static void dump(struct cb_inspection *inspection, const struct cbgen_context *context, const struct cb_made *made) {
  const char *directory = folder("CBGEN_DUMP");
  struct cb_diag why = {0};
  if (!directory) return;
  if (!path_of(inspection->path, directory, made))
    cb_warn(context, "CBGEN_DUMP: nothing is written to '%s': %s", directory, strerror(errno));
  else if (cb_file_put(inspection->path, made->source.text, (size_t)made->source.length, &why))
    cb_warn(context, "CBGEN_DUMP: %s", why.message);
  else {
    cb_log(context, "CBGEN_DUMP: '%s'", inspection->path);
    inspection->has_file = 1;
  }
}

enum cb_status cb_inspect(struct cb_inspection *inspection, const struct cbgen_context *context, struct cb_made *made,
                          struct cb_diag *diag) {
  *inspection = (struct cb_inspection){0};
  const enum cb_status s = replace(inspection, context, made, diag);
  if (!s && !inspection->is_replaced) dump(inspection, context, made);
  return s;
}
