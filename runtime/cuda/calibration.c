// SPDX-License-Identifier: Apache-2.0
/* The files of calibrations: see calibration.h. */
#include "runtime/cuda/calibration.h"

#include "base/environment.h"
#include "base/file.h"
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char format_name[] = "cbgen calibration 1";

#define FIELD(name) #name, offsetof(struct cb_target, name)

const struct cb_figure cb_figure_table[] = {
    {FIELD(read_gb_per_s), 10, 100000, "GB/s", "streaming read of device memory"},
    {FIELD(l2_gb_per_s), 10, 1000000, "GB/s", "streaming read of what lies in L2"},
    {FIELD(sectors_g_per_s), 1, 10000, "G/s", "32-byte sectors gathered from L2"},
    {FIELD(latency_ns), 20, 20000, "ns", "load that hits L2 and waits for the one before"},
    {FIELD(launch_ns), 100, 1000000, "ns", "empty kernel, back to back"},
    {NULL, 0, 0, 0, NULL, NULL},
};

int64_t cb_figure_get(const struct cb_target *target, const struct cb_figure *figure) {
  int64_t value;
  memcpy(&value, (const char *)target + figure->offset, sizeof value);
  return value;
}

void cb_figure_set(struct cb_target *target, const struct cb_figure *figure, int64_t value) {
  memcpy((char *)target + figure->offset, &value, sizeof value);
}

/* ---- where */

/* The names of GPUs have letters and digits; whatever else one brings, it is a file name in the directory. */
static void add_name(char *name, size_t size, const char *model) {
  size_t length = 0;
  for (const char *c = model; *c && length + 2 < size; c++) {
    if (isalnum((unsigned char)*c))
      name[length++] = (char)tolower((unsigned char)*c);
    else if (length && name[length - 1] != '-')
      name[length++] = '-';
  }
  while (length && name[length - 1] == '-') length--;
  name[length] = 0;
}

enum cb_status cb_calibration_path(char path[CB_CALIBRATION_PATH], const char *model, struct cb_diag *diag) {
  const char *own = cb_environment("CBGEN_CALIBRATION"), *shared = cb_environment("XDG_CONFIG_HOME"),
             *home = cb_environment("HOME");
  char name[80];
  int length;
  add_name(name, sizeof name, model);
  if (own && !*own)
    return cb_fail(diag, CB_ERR_MISSING, "calibrations are switched off: 'CBGEN_CALIBRATION' is empty");
  if (own)
    length = snprintf(path, CB_CALIBRATION_PATH, "%s/%s.json", own, name);
  else if (shared && *shared == '/') /* the XDG specification: relative ones are ignored */
    length = snprintf(path, CB_CALIBRATION_PATH, "%s/cbgen/%s.json", shared, name);
  else if (home && *home)
    length = snprintf(path, CB_CALIBRATION_PATH, "%s/.config/cbgen/%s.json", home, name);
  else
    return cb_fail(diag, CB_ERR_MISSING, "none of CBGEN_CALIBRATION, XDG_CONFIG_HOME and HOME is set");
  if (length < CB_CALIBRATION_PATH) return CB_OK;
  return cb_fail(diag, CB_ERR_LIMIT, "the directory of calibrations has a path of over %d bytes",
                 CB_CALIBRATION_PATH);
}

/* ---- reading */

enum { LONGEST = 1 << 16 };

/* A regular file's bytes; neither a pipe nor a device may keep whoever opens a GPU waiting. -1: there is
 * none. */
static long read_file(char *bytes, const char *path, struct cb_diag *diag) {
  struct stat info;
  long length = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno != ENOENT && errno != ENOTDIR) cb_fail(diag, CB_ERR_IO, "%s", strerror(errno));
  if (fd < 0) return -1;
  if (fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_size > LONGEST) {
    cb_fail(diag, CB_ERR_FORMAT, "it is no regular file of at most %d bytes", LONGEST);
    length = -1;
  }
  while (length >= 0 && length < LONGEST) {
    const ssize_t got = read(fd, bytes + length, (size_t)(LONGEST - length));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cb_fail(diag, CB_ERR_IO, "%s", strerror(errno));
    if (got <= 0) {
      length = got < 0 ? -1 : length;
      break;
    }
    length += got;
  }
  close(fd);
  return length;
}

static enum cb_status check_text(const json_t *root, const char *name, const char *wanted,
                                 struct cb_diag *diag) {
  const char *got = json_string_value(json_object_get(root, name));
  if (got && !strcmp(got, wanted)) return CB_OK;
  return cb_fail(diag, CB_ERR_FORMAT, "'%s' is '%.80s', not '%s'", name, got ? got : "missing", wanted);
}

static enum cb_status check_figure(const struct cb_target *target, const struct cb_figure *figure,
                                   struct cb_diag *diag) {
  const long long value = cb_figure_get(target, figure);
  if (value >= figure->least && value <= figure->most) return CB_OK;
  return cb_fail(diag, CB_ERR_DEVICE, "'%s' is %lld %s; %lld to %lld are plausible", figure->name, value,
                 figure->unit, (long long)figure->least, (long long)figure->most);
}

static enum cb_status take_figure(struct cb_target *target, const json_t *root,
                                  const struct cb_figure *figure, struct cb_diag *diag) {
  const json_t *value = json_object_get(root, figure->name);
  if (!json_is_integer(value)) return cb_fail(diag, CB_ERR_FORMAT, "'%s' is no whole number", figure->name);
  cb_figure_set(target, figure, json_integer_value(value));
  return check_figure(target, figure, diag);
}

static enum cb_status take(struct cb_target *target, const json_t *root, struct cb_diag *diag) {
  enum cb_status s = check_text(root, "format", format_name, diag);
  if (!s) s = check_text(root, "model", target->model, diag);
  if (!s) s = check_text(root, "arch", target->arch, diag);
  const json_t *processors = json_object_get(root, "multiprocessors");
  if (!s && (!json_is_integer(processors) || json_integer_value(processors) != target->multiprocessors))
    s = cb_fail(diag, CB_ERR_FORMAT, "'multiprocessors' is not %d", target->multiprocessors);
  for (const struct cb_figure *figure = cb_figure_table; figure->name && !s; figure++)
    s = take_figure(target, root, figure, diag);
  return s;
}

static enum cb_status parse(struct cb_target *target, const char *path, int *found, struct cb_diag *diag) {
  char bytes[LONGEST];
  json_t *root;
  const long length = read_file(bytes, path, diag);
  *found = length >= 0 || diag->status;
  if (length < 0) return diag->status;
  enum cb_status s = cb_json_read(&root, bytes, (size_t)length, diag);
  if (!s) s = take(target, root, diag);
  json_decref(root);
  return s;
}

int cb_calibration_load(struct cb_target *target, char *remark, size_t size) {
  char path[CB_CALIBRATION_PATH];
  struct cb_diag diag = {0};
  struct cb_target read = *target;
  int found = 0;
  *remark = 0;
  if (cb_calibration_path(path, target->model, &diag)) return 0;
  const enum cb_status s = parse(&read, path, &found, &diag);
  if (found && s)
    snprintf(remark, size, "calibration '%s' is ignored: %s", path, diag.message);
  else if (found)
    snprintf(remark, size, "calibration '%s' is in use", path);
  if (s || !found) return 0;
  *target = read;
  return 1;
}

/* ---- writing */

enum cb_status cb_calibration_text(struct cb_text *text, const struct cb_target *target,
                                   struct cb_diag *diag) {
  enum cb_status s = CB_OK;
  json_t *root = json_pack("{s:s, s:s, s:s, s:i, s:s}", "format", format_name, "model", target->model, "arch",
                           target->arch, "multiprocessors", target->multiprocessors, "measured_by",
                           "cbgen " CB_VERSION);
  int failed = !root;
  for (const struct cb_figure *figure = cb_figure_table; figure->name && !s; figure++) {
    s = check_figure(target, figure, diag);
    failed |= json_object_set_new(root, figure->name, json_integer(cb_figure_get(target, figure)));
  }
  if (s) {
    json_decref(root);
    return s;
  }
  s = cb_json_write(text, (struct cb_json){root, &failed}, JSON_INDENT(2), "a calibration", diag);
  cb_text_add_string(text, "\n");
  return s || !text->failed ? s : cb_fail_memory(diag, "a calibration", text->length);
}

/* Whether they could be made shows when the file is. */
static void make_directories(const char *path) {
  struct cb_text part = {0};
  for (const char *slash = path; (slash = strchr(slash + 1, '/'));) {
    part.length = 0;
    cb_text_add_bytes(&part, path, (size_t)(slash - path));
    if (!part.failed) mkdir(part.bytes, 0777);
  }
  cb_text_release(&part);
}

enum cb_status cb_calibration_save(const struct cb_target *target, const char *path, struct cb_diag *diag) {
  struct cb_text text = {0};
  enum cb_status s = cb_calibration_text(&text, target, diag);
  if (!s) make_directories(path);
  if (!s) s = cb_file_put(path, text.bytes, text.length, diag);
  cb_text_release(&text);
  return s;
}
