// SPDX-License-Identifier: Apache-2.0
/* Instructions with their lines: see listing.h. */
#include "runtime/verify/listing.h"

#include "base/environment.h"
#include "base/file.h"
#include "base/memory.h"
#include "runtime/verify/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- the list */

/* Every line may become an entry. */
static enum cb_status begin(struct cb_listing *listing, const char *text, size_t length, struct cb_diag *diag) {
  size_t lines = 1;
  *listing = (struct cb_listing){.bytes = cb_alloc(length + 1, 1)};
  for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
  listing->list = cb_alloc(lines, sizeof *listing->list);
  if (!listing->bytes || !listing->list) {
    cb_listing_release(listing);
    return cb_fail_memory(diag, "a list of instructions", length + lines * sizeof *listing->list);
  }
  memcpy(listing->bytes, text, length);
  listing->bytes[length] = 0;
  return CB_OK;
}

/* One blank stands for several, and for tabs. Returns what is left of the length; none is left at the end. */
static size_t compact(char *text, size_t length) {
  size_t kept = 0;
  for (size_t i = 0; i < length; i++) {
    const int blank = text[i] == ' ' || text[i] == '\t';
    if (blank && (!kept || text[kept - 1] == ' ')) continue;
    text[kept++] = blank ? ' ' : text[i];
  }
  return kept && text[kept - 1] == ' ' ? kept - 1 : kept;
}

static void add(struct cb_listing *listing, const char *at, size_t length, int line, int is_label) {
  char *text = listing->bytes + (at - listing->bytes);
  length = compact(text, length);
  if (!length) return;
  listing->list[listing->count++] = (struct cb_instruction){text, (int)length, line, is_label};
  listing->instructions += !is_label;
}

void cb_listing_release(struct cb_listing *listing) {
  cb_free(listing->bytes);
  cb_free(listing->list);
  *listing = (struct cb_listing){0};
}

static const char *next_line(const char *line) {
  line += strcspn(line, "\n");
  return line + (*line == '\n');
}

/* ---- PTX: instructions stand between the braces of a kernel */

/* One line of a kernel's body, without the blanks before it; *line is kept up to date. */
static void take_ptx(struct cb_listing *listing, const char *at, size_t length, int *line) {
  int file;
  if (!strncmp(at, ".loc", 4)) {
    if (sscanf(at + 4, "%d %d", &file, line) != 2 || file != 1) *line = 0;
    return;
  }
  if (!length || *at == '.' || !strncmp(at, "//", 2)) return;
  const int is_label = at[length - 1] == ':';
  if (is_label || at[length - 1] == ';' || at[length - 1] == ',') add(listing, at, length - !is_label, *line, is_label);
}

enum cb_status cb_listing_ptx(struct cb_listing *listing, const char *ptx, struct cb_diag *diag) {
  int inside = 0, line = 0;
  const enum cb_status s = begin(listing, ptx, strlen(ptx), diag);
  for (const char *at = s ? "" : listing->bytes; *at; at = next_line(at)) {
    const char *start = at + strspn(at, " \t"), entry[] = ".entry ";
    const size_t length = strcspn(start, "\r\n");
    const char *name = inside ? NULL : memmem(start, length, entry, strlen(entry));
    if (name) add(listing, name + strlen(entry), strcspn(name + strlen(entry), "(\r\n"), 0, 1);
    if (*at == '{') inside = 1;
    else if (*at == '}') inside = line = 0;
    else if (inside) take_ptx(listing, start, length, &line);
  }
  return s;
}

/* ---- SASS */

/* "ADDRESS] TEXT ;" behind the comment that an address is; NULL: there is none. */
static const char *behind_address(const char *at) {
  if (strncmp(at, "/*", 2)) return NULL;
  const char *end = at + 2 + strspn(at + 2, "0123456789abcdef");
  return end > at + 2 && !strncmp(end, "*/", 2) ? end + 2 + strspn(end + 2, " \t") : NULL;
}

static void take_sass(struct cb_listing *listing, const char *at, size_t length, int *line) {
  static const char file[] = "//## File \"";
  const char *code = behind_address(at), *end = at + length;
  if (!strncmp(at, file, strlen(file))) {
    const char *number = memmem(at, length, "\", line ", 8);
    *line = number ? atoi(number + 8) : 0;
  } else if (code && code < end && *code != '.') {
    const char *semicolon = memchr(code, ';', (size_t)(end - code));
    if (semicolon) add(listing, code, (size_t)(semicolon - code), *line, 0);
  } else if (length > 1 && at[length - 1] == ':' && (*at != '.' || !strncmp(at, ".L_", 3))) {
    add(listing, at, length, *line, 1);
  }
}

enum cb_status cb_listing_sass(struct cb_listing *listing, const char *sass, size_t length, struct cb_diag *diag) {
  int line = 0;
  const enum cb_status s = begin(listing, sass, length, diag);
  for (const char *at = s ? "" : listing->bytes; *at; at = next_line(at)) {
    const char *start = at + strspn(at, " \t");
    if (!strncmp(start, ".section", 8)) line = 0;
    take_sass(listing, start, strcspn(start, "\r\n"), &line);
  }
  return s;
}

/* ---- nvdisasm. What it reads and writes lies in memory: there is no file that could stay behind. */

enum { PATH_BYTES = 512 };

/* The program to try as number `attempt`; 0: there are no more. */
static int candidate(char path[PATH_BYTES], int attempt) {
  static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
  const char *own = cb_environment("CBGEN_NVDISASM");
  if (own) {
    snprintf(path, PATH_BYTES, "%s", own);
    return attempt == 0;
  }
  const char *folder = attempt == 1 || attempt == 2 ? cb_environment(variables[attempt - 1]) : "/usr/local/cuda";
  snprintf(path, PATH_BYTES, attempt ? "%s/bin/nvdisasm" : "%snvdisasm", attempt && folder ? folder : "");
  return attempt < 4;
}

/* A file without a name that holds the bytes, to be opened by the child as `path`; -1: there is none. */
static int memory_file(char path[32], const char *name, const void *bytes, size_t length) {
  const int fd = memfd_create(name, 0);
  size_t written = 0;
  while (fd >= 0 && written < length) {
    const ssize_t more = write(fd, (const char *)bytes + written, length - written);
    if (more <= 0) break;
    written += (size_t)more;
  }
  if (fd >= 0 && written < length) {
    close(fd);
    return -1;
  }
  snprintf(path, 32, "/proc/self/fd/%d", fd);
  return fd;
}

/* The output of the first program that is there. */
static enum cb_status run_disassembler(const char *input, const char *output, struct cb_diag *diag) {
  char program[PATH_BYTES];
  for (int attempt = 0; candidate(program, attempt); attempt++) {
    const char *const argv[] = {program, "-c", "-g", input, NULL};
    struct cb_process process = {.argv = argv, .output = output, .seconds = 120};
    const enum cb_status s = cb_process_run(&process, diag);
    if (s) return s;
    if (process.found && process.exit_code)
      return cb_fail(diag, CB_ERR_IO, "'%s' could not disassemble the kernel", program);
    if (process.found) return CB_OK;
  }
  return cb_fail(diag, CB_ERR_MISSING, "there is no nvdisasm; a CUDA toolkit or the PyPI wheel nvidia-cuda-nvdisasm has it, "
                                       "and 'CBGEN_NVDISASM' names it");
}

enum cb_status cb_listing_disassemble(struct cb_listing *listing, const void *cubin, size_t bytes,
                                      struct cb_diag *diag) {
  char input[32], output[32];
  struct cb_mapping mapping = {0};
  const int in = memory_file(input, "kernel.cubin", cubin, bytes), out = memory_file(output, "kernel.sass", "", 0);
  enum cb_status s = in < 0 || out < 0 ? cb_fail(diag, CB_ERR_IO, "cannot hand the kernel to nvdisasm") : CB_OK;
  if (!s) s = run_disassembler(input, output, diag);
  if (!s) s = cb_file_map(&mapping, output, diag);
  if (!s) s = cb_listing_sass(listing, mapping.bytes, mapping.length, diag);
  cb_file_unmap(&mapping);
  if (in >= 0) close(in);
  if (out >= 0) close(out);
  return s;
}
