// SPDX-License-Identifier: Apache-2.0
/* What the system tells of its memory: see available.h. Nothing here allocates. */
#include "base/available.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_uint_fast64_t limit;

void cb_available_limit(uint64_t bytes) { atomic_store(&limit, bytes); }

/* The number behind `name` at a line's begin; UINT64_MAX when there is none. */
static uint64_t number_in(const char *path, const char *name) {
  char text[16384] = "\n", line[64] = "\n";
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : read(file, text + 1, sizeof text - 2);
  if (file >= 0) close(file);
  strncat(line, name, sizeof line - 2);
  const char *at = length > 0 ? strstr(text, line) : NULL;
  if (!at) return UINT64_MAX;
  at += strlen(line);
  at += strspn(at, " ");
  return *at >= '0' && *at <= '9' ? strtoull(at, NULL, 10) : UINT64_MAX;
}

static uint64_t or_zero(uint64_t number) { return number == UINT64_MAX ? 0 : number; }

/* Of the control group at the root of what this process sees, which is a container's. Its files' pages give way. */
static uint64_t left_of_group(void) {
  const uint64_t most = number_in("/sys/fs/cgroup/memory.max", ""); /* "max": no limit */
  const uint64_t taken = or_zero(number_in("/sys/fs/cgroup/memory.current", ""));
  const uint64_t files = or_zero(number_in("/sys/fs/cgroup/memory.stat", "inactive_file")) +
                         or_zero(number_in("/sys/fs/cgroup/memory.stat", "active_file"));
  if (most == UINT64_MAX) return most;
  const uint64_t kept = taken > files ? taken - files : 0;
  return most > kept ? most - kept : 0;
}

static uint64_t available(void) {
  const uint64_t kilobytes = number_in("/proc/meminfo", "MemAvailable:"), group = left_of_group();
  const uint64_t system = kilobytes < UINT64_MAX / 1024 ? 1024 * kilobytes : UINT64_MAX;
  const uint64_t own = atomic_load(&limit), least = system < group ? system : group;
  return own && own < least ? own : least;
}

enum cb_status cb_available_check(uint64_t bytes, const char *what, struct cb_diag *diag) {
  const uint64_t there = available();
  if (bytes <= there) return CB_OK;
  return cb_fail(diag, CB_ERR_MEMORY,
                 "out of memory: %s takes %llu MB, and %llu MB are available: end other programs, or take a machine with "
                 "more",
                 what, (unsigned long long)(bytes >> 20), (unsigned long long)(there >> 20));
}
