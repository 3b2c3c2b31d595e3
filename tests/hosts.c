// SPDX-License-Identifier: Apache-2.0
/* See hosts.h. */
#include "tests/hosts.h"

#include "tests/support.h"

enum { MOST_HOSTS = 8 };

static struct {
  struct cb_host_options options;
  struct cb_host *host;
} hosts[MOST_HOSTS];
static int hosts_count;

/* lld, where it is, links in less than half of the time. */
#ifdef TESTS_HAVE_LLD
#define AND_LINKER " -fuse-ld=lld"
#else
#define AND_LINKER ""
#endif

const char *fast_compiler(void) { return getenv("CXX") ? NULL : "clang++" AND_LINKER; }

const char *usual_compiler(void) { return getenv("CXX") ? NULL : "g++" AND_LINKER; }

static void close_hosts(void) {
  while (hosts_count) cb_host_close(hosts[--hosts_count].host);
}

static int same_compiler(const char *a, const char *b) {
  return a && b ? !strcmp(a, b) : a == b;
}

static int same_options(const struct cb_host_options *a, const struct cb_host_options *b) {
  return same_compiler(a->compiler, b->compiler) && a->sanitize == b->sanitize && a->optimize == b->optimize &&
         a->debug == b->debug && a->parallel == b->parallel && a->batch == b->batch && a->job_seconds == b->job_seconds;
}

static struct cb_host *open_host(const struct cb_host_options *options) {
  struct cb_host_options own = *options;
  struct cb_host *host = NULL;
  struct cb_diag diag = {0};
  enum cb_status s = cb_host_open(&host, &own, &diag);
  if (s == CB_ERR_MISSING && own.compiler) {
    own.compiler = NULL;
    s = cb_host_open(&host, &own, &diag);
  }
  if (s) fail_msg("%s", diag.message);
  return host;
}

/* `options.compiler` is a constant or lives in the environment. */
struct cb_host *kernel_host(const struct cb_host_options *options) {
  for (int i = 0; i < hosts_count; i++)
    if (same_options(&hosts[i].options, options)) return hosts[i].host;
  assert_true(hosts_count < MOST_HOSTS);
  if (!hosts_count) atexit(close_hosts);
  hosts[hosts_count].options = *options;
  hosts[hosts_count].host = open_host(options);
  return hosts[hosts_count++].host;
}

enum cb_status verify_kernel(const struct cb_verify_case *one, const struct cb_verify_options *options,
                             struct cb_verify_report *report, struct cb_diag *diag) {
  const enum cb_status s = cb_verify_batch(kernel_host(&options->host), one, 1, options, report, diag);
  return !s && report->status ? cb_fail_lines(diag, report->status, report->message) : s;
}
