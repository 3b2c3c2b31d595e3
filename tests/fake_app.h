// SPDX-License-Identifier: Apache-2.0
/* The application beside the library on the fake GPU: the calls of fake_driver.h that are its own, bound, and the
 * fake's control. */
#ifndef CBGEN_TESTS_FAKE_APP_H
#define CBGEN_TESTS_FAKE_APP_H

#include "tests/fake_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static struct fake_control *fake;

static uint64_t (*app_alloc)(int device, size_t bytes);
static void (*app_free)(uint64_t address);
static int (*app_put)(uint64_t to, const void *from, size_t bytes);
static int (*app_take)(void *to, uint64_t from, size_t bytes);
static void (*app_set_current)(int device);
static void (*app_end_context)(int device);
static void *(*app_stream)(int device, unsigned flags);
static void (*app_stream_free)(void *stream);
static void (*app_trap_taken)(void);

/* `function` receives the address of one of the fake's functions. */
static inline void bind_fake(void *function, const char *name) {
  void *symbol = fake_symbol(name);
  assert_non_null(symbol);
  memcpy(function, &symbol, sizeof symbol);
}

/* The fake as it starts. Returns −1, as a test's set-up does, when there is none. */
static inline int open_app(void) {
  fake = fake_open();
  if (!fake) return -1;
  bind_fake(&app_alloc, "fake_alloc");
  bind_fake(&app_free, "fake_free");
  bind_fake(&app_put, "fake_put");
  bind_fake(&app_take, "fake_take");
  bind_fake(&app_set_current, "fake_set_current");
  bind_fake(&app_end_context, "fake_end_context");
  bind_fake(&app_stream, "fake_stream");
  bind_fake(&app_stream_free, "fake_stream_free");
  bind_fake(&app_trap_taken, "fake_trap_taken");
  return 0;
}

#endif
