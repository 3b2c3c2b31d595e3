// SPDX-License-Identifier: Apache-2.0
/* Contexts of the public interface: options, messages, the log, and the GPU when it is first needed. */
#include "runtime/api/api.h"

#include "analysis/plan/recipe.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/memory.h"
#include "runtime/cuda/ranges.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAME(public_name, own) _Static_assert((int)(public_name) == (int)(own), "statuses are numbered alike")
SAME(CBGEN_OK, CB_OK);
SAME(CBGEN_ERROR_ARGUMENT, CB_ERR_ARGUMENT);
SAME(CBGEN_ERROR_FORMAT, CB_ERR_FORMAT);
SAME(CBGEN_ERROR_UNSUPPORTED, CB_ERR_UNSUPPORTED);
SAME(CBGEN_ERROR_LIMIT, CB_ERR_LIMIT);
SAME(CBGEN_ERROR_MEMORY, CB_ERR_MEMORY);
SAME(CBGEN_ERROR_IO, CB_ERR_IO);
SAME(CBGEN_ERROR_MISSING, CB_ERR_MISSING);
SAME(CBGEN_ERROR_COMPILE, CB_ERR_COMPILE);
SAME(CBGEN_ERROR_DEVICE, CB_ERR_DEVICE);
SAME(CBGEN_ERROR_WRONG, CB_ERR_WRONG);
SAME(CBGEN_ERROR_INTERNAL, CB_ERR_INTERNAL);
_Static_assert(CB_STATUS_COUNT == CBGEN_ERROR_INTERNAL + 1, "every status is public");

const char *cbgen_version(void) {
  return CB_VERSION;
}

const char *cbgen_status_name(cbgen_status status) {
  return cb_status_name((enum cb_status)status);
}

static void open_own_log(struct cbgen_context *context);

/* ---- life */

cbgen_status cbgen_context_create(cbgen_context **result) {
  CB_STANDARD_NUMERICS;
  if (!result) return CBGEN_ERROR_ARGUMENT;
  cbgen_context *context = *result = cb_calloc(1, sizeof *context);
  if (!context) return CBGEN_ERROR_MEMORY;
  cb_options_default(&context->options);
  context->device = CB_DEVICE_CURRENT;
  open_own_log(context);
  cb_ranges_open();
  const enum cb_status s = cb_target_find(&context->target, "sm_90", &context->diag);
  if (!s) return CBGEN_OK;
  cbgen_context_destroy(context);
  *result = NULL;
  return (cbgen_status)s;
}

void cbgen_context_destroy(cbgen_context *context) {
  if (!context) return;
  cb_session_release(context->session);
  cb_cache_close(context->cache);
  cb_free(context->cache_directory);
  cb_free(context->cache_path);
  cb_free(context->nvrtc_path);
  cb_free(context->epilogue);
  cb_free(context);
}

void cbgen_trim(void) {
  cb_session_trim();
}

const char *cbgen_message(const cbgen_context *context) {
  return context ? context->diag.message : "";
}

enum cb_status cb_context_session(struct cbgen_context *context, struct cb_session **session) {
  enum cb_status s = CB_OK;
  const int opened = !context->session;
  if (opened) s = cb_session_open(&context->session, context->device, &context->diag);
  else if (!cb_device_is_own(context->session->device))
    s = cb_device_enter(context->session->device, &context->diag); /* which says why it cannot */
  if (opened && !s && *context->session->device->relative) cb_log(context, "%s", context->session->device->relative);
  if (!s) s = cb_session_use_memory(context->session, &context->memory, context->memory_limit, &context->diag);
  if (!s) s = cb_session_name_nvrtc(context->session, context->nvrtc_path, &context->diag);
  *session = context->session;
  return s;
}

/* What is wrong with it is for the log. */
struct cb_cache *cb_context_cache(struct cbgen_context *context) {
  struct cb_diag diag = {0};
  const struct cb_cache_options options = {.directory = context->cache_directory,
                                           .path = context->cache_path,
                                           .in_memory = 1,
                                           .limit = context->cache_limit};
  if (context->cache) return context->cache;
  if (cb_cache_open(&context->cache, &options, &diag))
    cb_log(context, "cache: %s", diag.message);
  else if (cb_cache_state(context->cache) == CB_CACHE_ON)
    cb_log(context, "cache: '%s'%s%s", cb_cache_directory(context->cache), *cb_cache_remark(context->cache) ? ": " : "",
           cb_cache_remark(context->cache));
  for (int base = 0; base < cb_cache_bases(context->cache); base++)
    cb_log(context, "cache: '%s' is read, too", cb_cache_base_directory(context->cache, base));
  return context->cache;
}

cbgen_status cbgen_set_allocator(cbgen_context *context, const cbgen_allocator *allocator) {
  cbgen_allocator taken = {0};
  if (!context) return CBGEN_ERROR_ARGUMENT;
  enum cb_status s = CB_OK;
  if (allocator)
    s = cb_take_struct(&taken, sizeof taken, sizeof taken, allocator, "cbgen_allocator", &context->diag);
  if (!s && allocator && (!taken.allocate || !taken.release))
    s = cb_fail(&context->diag, CB_ERR_ARGUMENT, "an allocator needs both functions: 'allocate' and 'release'");
  if (!s && context->session)
    s = cb_fail(&context->diag, CB_ERR_ARGUMENT,
                "the allocator comes too late: the context works on a GPU already; make another context");
  if (!s) context->memory = (struct cb_memory_source){taken.user, taken.stream, taken.allocate, taken.release};
  return (cbgen_status)s;
}

/* ---- the log */

cbgen_status cbgen_set_log(cbgen_context *context, cbgen_log log, void *user) {
  if (!context) return CBGEN_ERROR_ARGUMENT;
  context->log = log;
  context->log_user = user;
  return CBGEN_OK;
}

/* To the application's log, else to standard error as far as CBGEN_LOG asks for it. */
__attribute__((format(printf, 3, 0))) static void say(const struct cbgen_context *context, enum cb_level level,
                                                      const char *format, va_list arguments) {
  char line[1024], printable[1024];
  struct cb_numerics ours;
  if (!context->log && context->own_log < level) return;
  vsnprintf(line, sizeof line, format, arguments);
  cb_escape(printable, sizeof printable, line, "");
  cb_numerics_pause(&ours);
  if (context->log)
    context->log(context->log_user, printable);
  else
    fprintf(stderr, "cbgen: %s\n", printable);
  cb_numerics_resume(&ours);
}

void cb_log(const struct cbgen_context *context, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(context, CB_LEVEL_INFO, format, arguments);
  va_end(arguments);
}

void cb_warn(const struct cbgen_context *context, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  say(context, CB_LEVEL_WARN, format, arguments);
  va_end(arguments);
}

/* A value that is none asks for something, so all is said, and first that it is none. */
static void open_own_log(struct cbgen_context *context) {
  static const char *const words[] = {[CB_LEVEL_OFF] = "off", [CB_LEVEL_WARN] = "warn", [CB_LEVEL_INFO] = "info"};
  const char *value = cb_environment("CBGEN_LOG");
  if (!value || !*value) return;
  for (int level = CB_LEVEL_OFF; level <= CB_LEVEL_INFO; level++)
    if (!strcmp(words[level], value)) {
      context->own_log = (enum cb_level)level;
      return;
    }
  context->own_log = CB_LEVEL_INFO;
  cb_warn(context, "CBGEN_LOG does not take '%s'; it takes off, warn or info", value);
}

int cb_has_log(const struct cbgen_context *context) {
  return context->log || context->own_log >= CB_LEVEL_INFO;
}

/* ---- options */

/* The number of `value` in a list that ends with NULL. */
static enum cb_status find_word(int *number, const char *name, const char *value, const char *const *words,
                                struct cb_diag *diag) {
  for (*number = 0; words[*number]; ++*number)
    if (!strcmp(words[*number], value)) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' does not take '%s'; it takes %s, %s or %s", name, value,
                 words[0], words[1], words[2]);
}

static enum cb_status set_embed(cbgen_context *context, const char *value) {
  static const char *const words[] = {
      [CB_EMBED_AUTO] = "auto", [CB_EMBED_ALWAYS] = "always", [CB_EMBED_NEVER] = "never", NULL};
  int number;
  const enum cb_status s = find_word(&number, "embed", value, words, &context->diag);
  if (!s) context->embed = (enum cb_embed)number;
  return s;
}

static enum cb_status set_cache_data(cbgen_context *context, const char *value) {
  static const char *const words[] = {
      [CB_KEEP_AUTO] = "auto", [CB_KEEP_ALWAYS] = "always", [CB_KEEP_NEVER] = "never", NULL};
  int number;
  const enum cb_status s = find_word(&number, "cache-data", value, words, &context->diag);
  if (!s) context->keep = (enum cb_keep)number;
  return s;
}

static enum cb_status set_pack(cbgen_context *context, const char *value) {
  static const char *const words[] = {
      [CB_PACK_AUTO] = "auto", [CB_PACK_HOST] = "host", [CB_PACK_DEVICE] = "device", NULL};
  int number;
  const enum cb_status s = find_word(&number, "pack", value, words, &context->diag);
  if (!s) context->pack = (enum cb_pack)number;
  return s;
}

enum { MOST_THREADS = 4096 };

static void close_cache(cbgen_context *context) {
  cb_cache_close(context->cache);
  context->cache = NULL;
}

/* Puts a copy of `value` in the place of what `text` points to. */
static enum cb_status set_text(char **text, const char *value, struct cb_diag *diag) {
  const size_t bytes = strlen(value) + 1;
  char *copy = cb_alloc(bytes, 1);
  if (!copy) return cb_fail_memory(diag, "an option's value", bytes);
  memcpy(copy, value, bytes);
  cb_free(*text);
  *text = copy;
  return CB_OK;
}

static enum cb_status set_cache(cbgen_context *context, const char *value) {
  close_cache(context);
  return set_text(&context->cache_directory, value, &context->diag);
}

static enum cb_status set_cache_path(cbgen_context *context, const char *value) {
  close_cache(context);
  return set_text(&context->cache_path, value, &context->diag);
}

static enum cb_status set_threads(cbgen_context *context, const char *value) {
  char *end;
  const long number = strtol(value, &end, 10);
  const int is_auto = !strcmp(value, "auto");
  if (!is_auto && (*end || *value < '0' || *value > '9' || number < 1 || number > MOST_THREADS))
    return cb_fail(&context->diag, CB_ERR_ARGUMENT, "'threads' does not take '%s'; it takes 'auto' or 1 to %d", value,
                   MOST_THREADS);
  context->threads = is_auto ? 0 : (int)number;
  return CB_OK;
}

static enum cb_status set_nvrtc(cbgen_context *context, const char *value) {
  return set_text(&context->nvrtc_path, value, &context->diag);
}

static enum cb_status set_epilogue(cbgen_context *context, const char *value) {
  struct cb_statements *statements = NULL;
  enum cb_status s = CB_OK;
  if (*value) s = cb_statements_parse(&statements, value, "epilogue", 1, &context->diag);
  cb_free(statements);
  if (!s) s = set_text(&context->epilogue, value, &context->diag);
  if (!s) context->options.epilogue = context->epilogue;
  return s;
}

static enum cb_status set_cache_limit(cbgen_context *context, const char *value) {
  int64_t limit;
  enum cb_status s = cb_cache_size(&limit, value, &context->diag);
  if (s) return s;
  if (limit < 1)
    return cb_fail(&context->diag, CB_ERR_ARGUMENT, "'cache-limit' is '%s'; it is at least 1", value);
  close_cache(context);
  context->cache_limit = limit;
  return CB_OK;
}

static enum cb_status set_memory_limit(cbgen_context *context, const char *value) {
  int64_t limit = 0;
  if (strcmp(value, "none")) {
    const enum cb_status s = cb_cache_size(&limit, value, &context->diag);
    if (s) return s;
    if (limit < 1)
      return cb_fail(&context->diag, CB_ERR_ARGUMENT, "'memory-limit' is '%s'; it is at least 1, or 'none'", value);
  }
  context->memory_limit = limit;
  return CB_OK;
}

static enum cb_status set_arch(cbgen_context *context, const char *value) {
  struct cb_target target;
  const enum cb_status s = cb_target_find(&target, value, &context->diag);
  if (!s) context->target = target;
  return s;
}

static enum cb_status set_device(cbgen_context *context, const char *value) {
  char *end;
  const long number = strtol(value, &end, 10);
  int device = CB_DEVICE_CURRENT;
  if (strcmp(value, "current")) {
    if (!*value || *end || number < 0 || number > INT32_MAX || *value < '0' || *value > '9')
      return cb_fail(&context->diag, CB_ERR_ARGUMENT,
                     "'device' does not take '%s'; it takes 'current' or the number of a GPU", value);
    device = (int)number;
  }
  if (context->session && device != context->device)
    return cb_fail(&context->diag, CB_ERR_ARGUMENT,
                   "'device' comes too late: the context works on a GPU already; make another context");
  context->device = device;
  return CB_OK;
}

enum cb_status cb_context_option(struct cb_options *options, const char *name, const char *value,
                                 struct cb_diag *diag) {
  const struct cb_recipe *recipe;
  enum cb_status s = cb_options_set(options, name, value, diag);
  if (s || strcmp(name, "recipe")) return s;
  s = cb_recipe_find(&recipe, value, diag);
  if (!s) options->recipe = recipe->name; /* not the caller's string: that may go away */
  return s;
}

/* One of analysis' options. */
static enum cb_status set_option(cbgen_context *context, const char *name, const char *value) {
  struct cb_options options = context->options;
  const int is_type = !strcmp(name, "type"), is_auto = is_type && !strcmp(value, "auto");
  enum cb_status s = CB_OK;
  if (!is_auto) s = cb_context_option(&options, name, value, &context->diag);
  if (s) return s;
  if (is_auto) {
    struct cb_options standard;
    cb_options_default(&standard);
    options.type = standard.type;
  }
  context->options = options;
  if (is_type) context->has_type = !is_auto;
  if (!strcmp(name, "form")) context->has_form = 1;
  if (!strcmp(name, "search")) context->has_search = 1;
  return CB_OK;
}

cbgen_status cbgen_set(cbgen_context *context, const char *name, const char *value) {
  CB_STANDARD_NUMERICS;
  static const struct {
    const char *name;
    enum cb_status (*set)(cbgen_context *context, const char *value);
  } own[] = {{"arch", set_arch},
             {"embed", set_embed},
             {"cache", set_cache},
             {"cache-limit", set_cache_limit},
             {"cache-data", set_cache_data},
             {"cache-path", set_cache_path},
             {"device", set_device},
             {"epilogue", set_epilogue},
             {"memory-limit", set_memory_limit},
             {"pack", set_pack},
             {"nvrtc", set_nvrtc},
             {"threads", set_threads}};
  if (!context) return CBGEN_ERROR_ARGUMENT;
  if (!name || !value)
    return (cbgen_status)cb_fail(&context->diag, CB_ERR_ARGUMENT, "an option needs a name and a value");
  for (size_t i = 0; i < sizeof own / sizeof *own; i++)
    if (!strcmp(own[i].name, name)) return (cbgen_status)own[i].set(context, value);
  return (cbgen_status)set_option(context, name, value);
}
