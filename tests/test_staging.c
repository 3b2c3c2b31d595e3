// SPDX-License-Identifier: Apache-2.0
/* Long uploads on the fake GPU: every byte arrives, by pinned buffers or, where they are refused, without; after any
 * failing call nothing is left, and threads may upload side by side. What a session leaves in the application's context
 * is the next one's, and no other's. */
#include "tests/api_support.h"
#include "tests/session_support.h"

#include "runtime/cuda/staging.h"

#include <pthread.h>

enum { MIB = 1 << 20 };

/* Uploads and compares; what is around it on the device stays. */
static void check_upload(const struct cb_device *device, size_t count, uint64_t seed) {
  struct cb_diag diag = {0};
  cb_device_ptr there;
  unsigned char *bytes = random_bytes(count, seed), *back = malloc(count + 32);
  assert_non_null(back);
  assert_ok(cb_device_alloc(device, &there, count + 32, "bytes", &diag));
  assert_ok(cb_device_fill(device, there, 0x5a, count + 32, &diag));
  assert_ok(cb_device_upload(device, there + 16, bytes, count, "bytes", &diag));
  assert_ok(cb_device_download(device, back, there, count + 32, "bytes", &diag));
  assert_memory_equal(back + 16, bytes, count);
  for (size_t i = 0; i < 16; i++) assert_true(back[i] == 0x5a && back[count + 16 + i] == 0x5a);
  cb_device_free(device, there);
  free(bytes);
  free(back);
}

static void short_and_long_uploads_arrive(void **state) {
  (void)state;
  struct cb_session *session = open_fake_session();
  check_upload(session->device, 100, 1);
  check_upload(session->device, 2 * MIB, 2); /* too short to pay for pinned memory */
  assert_int_equal(fake->pinned, 0);
  const long copies = fake->copies_to_device;
  check_upload(session->device, 9 * MIB + 12345, 3);
  assert_int_equal(fake->pinned, 1);
  assert_true(fake->copies_to_device - copies > 9); /* chunks */
  check_upload(session->device, MIB, 4);            /* now that it is there */
  check_upload(session->device, MIB + 1, 5);
  check_upload(session->device, 16 * MIB, 6);
  assert_int_equal(fake->pinned, 1);
  close_fake_session(session);
}

static void refused_pinned_memory_is_done_without(void **state) {
  (void)state;
  for (long nth = 1; nth < 6; nth++) { /* memory, stream, events */
    struct cb_session *session = open_fake_session();
    struct cb_diag diag = {0};
    cb_device_ptr there;
    unsigned char *bytes = random_bytes(9 * MIB, 7);
    assert_ok(cb_device_alloc(session->device, &there, 9 * MIB, "bytes", &diag));
    fake->calls = 0;
    fake->failure = CB_CU_OUT_OF_MEMORY;
    fake->fail_at = nth;
    assert_ok(cb_device_upload(session->device, there, bytes, 9 * MIB, "bytes", &diag));
    assert_true(fake->calls >= nth);
    fake->fail_at = 0;
    assert_int_equal(fake->pinned, 0);
    assert_int_equal(fake->streams, 0);
    assert_int_equal(fake->events, 0);
    assert_memory_equal(fake_bytes(there, 9 * MIB), bytes, 9 * MIB);
    cb_device_free(session->device, there);
    check_upload(session->device, 9 * MIB, 8); /* it is not tried again */
    assert_int_equal(fake->pinned, 0);
    free(bytes);
    close_fake_session(session);
  }
}

static void failures_are_said_and_leave_nothing(void **state) {
  (void)state;
  struct cb_session *session = open_fake_session();
  unsigned char *bytes = random_bytes(20 * MIB, 9);
  int failures = 0;
  check_upload(session->device, 8 * MIB, 10);
  for (long nth = 1;; nth++) {
    struct cb_diag diag = {0};
    cb_device_ptr there;
    assert_ok(cb_device_alloc(session->device, &there, 20 * MIB, "bytes", &diag));
    fake->calls = 0;
    fake->failure = 700;
    fake->fail_at = nth;
    const enum cb_status s = cb_device_upload(session->device, there, bytes, 20 * MIB, "the bytes", &diag);
    const int reached = fake->calls >= nth;
    fake->fail_at = 0;
    if (s) {
      failures++;
      assert_int_equal(s, CB_ERR_DEVICE);
      assert_true(*diag.message);
    } else {
      assert_memory_equal(fake_bytes(there, 20 * MIB), bytes, 10 * MIB);
    }
    cb_device_free(session->device, there);
    assert_int_equal(fake->pushed, 1); /* the test's own */
    if (!reached) break;
  }
  assert_true(failures > 40);
  check_upload(session->device, 20 * MIB, 11);
  free(bytes);
  close_fake_session(session);
}

struct uploading {
  const struct cb_device *device;
  uint64_t seed;
};
static void *upload_often(void *user) {
  const struct uploading *mine = user;
  struct cb_diag diag = {0};
  assert_ok(cb_device_enter(mine->device, &diag));
  for (uint64_t i = 0; i < 4; i++)
    check_upload(mine->device, (8 + (size_t)i) * MIB + (size_t)mine->seed, mine->seed + i);
  cb_device_leave(mine->device);
  return NULL;
}

static void threads_upload_side_by_side(void **state) {
  (void)state;
  enum { THREADS = 3 };
  struct cb_session *session = open_fake_session();
  pthread_t threads[THREADS];
  struct uploading each[THREADS];
  for (int i = 0; i < THREADS; i++) {
    each[i] = (struct uploading){session->device, (uint64_t)(100 * i + 1)};
    assert_int_equal(pthread_create(&threads[i], NULL, upload_often, &each[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  close_fake_session(session);
}

/* ---- shapes, and sources whose bytes are elsewhere */

/* Every other window comes as one of a cache's section does that is read for the first time: all of it; the others to
 * the room's beginning. */
static const void *fetch_window(const void *user, size_t at, size_t length, void *room) {
  const size_t window = at / CB_STAGING_BUFFER, inside = at % CB_STAGING_BUFFER;
  assert_true(inside + length <= CB_STAGING_BUFFER);
  memset(room, 0x77, CB_STAGING_BUFFER);
  if (window % 2) return memcpy(room, (const char *)user + at, length);
  memcpy((char *)room + inside, (const char *)user + at, length);
  return (char *)room + inside;
}

/* From `skipped` bytes into the source on. */
static void check_source(const struct cb_device *device, const unsigned char *bytes, size_t count, size_t skipped) {
  struct cb_diag diag = {0};
  static const char nowhere[1]; /* stands for the bytes, and is not read */
  const struct cb_staging_source source = {nowhere, count, fetch_window, bytes};
  const void *from = (const void *)((uintptr_t)nowhere + skipped);
  cb_device_ptr there;
  assert_ok(cb_device_alloc(device, &there, count, "bytes", &diag));
  cb_staging_set_sources(device->staging, &source, 1);
  assert_ok(cb_device_upload(device, there, from, count - skipped, "bytes", &diag));
  cb_staging_set_sources(device->staging, NULL, 0);
  assert_memory_equal(fake_bytes(there, count - skipped), bytes + skipped, count - skipped);
  cb_device_free(device, there);
}

static void every_shape_brings_every_byte(void **state) {
  (void)state;
  static const struct cb_staging_shape shapes[] = {
      {1, 1, 1, CB_STAGING_BUFFER}, {3, 1, 2, 2 * CB_STAGING_BUFFER}, {2, 4, 4, 3 * CB_STAGING_BUFFER},
      {CB_STAGING_WORKERS, CB_STAGING_EACH, CB_STAGING_STREAMS, CB_STAGING_BUFFER}};
  unsigned char *bytes = random_bytes(9 * MIB, 12);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    struct cb_session *session = open_fake_session();
    struct cb_device *device = session->device;
    struct cb_diag diag = {0};
    cb_staging_free(device->staging);
    assert_ok(cb_staging_create(&device->staging, device, &shapes[i], &diag));
    check_upload(device, 9 * MIB + 12345, i);
    for (size_t skipped = 0; skipped < 4 * MIB; skipped = 3 * skipped + 100000)
      check_source(device, bytes, 8 * MIB + 777, skipped);
    close_fake_session(session);
  }
  free(bytes);
}

/* ---- sessions: what one leaves in the application's context is the next one's */

static struct cb_session *open_here(void) {
  struct cb_diag diag = {0};
  struct cb_session *session;
  setenv("CBGEN_LIBCUDA", getenv("CBGEN_FAKE_CUDA"), 1);
  setenv("CBGEN_NVRTC", getenv("CBGEN_FAKE_CUDA"), 1);
  assert_ok(cb_session_open(&session, CB_DEVICE_CURRENT, &diag));
  return session;
}

/* Takes all that is kept. */
static void use(struct cb_session *session, uint64_t seed) {
  struct cb_diag diag = {0};
  struct cb_hasher *hasher;
  const struct cb_packer *packer;
  assert_ok(cb_device_enter(session->device, &diag));
  check_upload(session->device, 9 * MIB, seed);
  cb_device_leave(session->device);
  assert_ok(cb_session_hasher(session, NULL, &hasher, &diag));
  assert_ok(cb_session_packer(session, NULL, CB_F64, &packer, &diag));
  assert_true(hasher->device == session->device && packer->device == session->device);
}

static void the_next_session_finds_what_the_last_one_had(void **state) {
  (void)state;
  app_set_current(0);
  struct cb_session *session = open_here();
  use(session, 1);
  const struct fake_control before = *fake;
  assert_true(before.pinned && before.modules == 2);
  for (uint64_t i = 2; i < 5; i++) {
    cb_session_release(session);
    session = open_here();
    use(session, i);
    assert_int_equal(fake->pinned, before.pinned);
    assert_int_equal(fake->modules, before.modules);
    assert_int_equal(fake->compilations, before.compilations);
  }
  struct cb_session *second = open_here(); /* beside the first: has its own, and one of both is kept */
  use(second, 5);
  assert_int_equal(fake->modules, 2 * before.modules);
  cb_session_release(session);
  cb_session_release(second);
  assert_int_equal(fake->modules, before.modules);
  assert_int_equal(fake->pinned, before.pinned);
  cb_session_trim();
  assert_true(fake_is_clean(fake));
  cb_session_trim(); /* nothing to do */
  assert_true(fake_is_clean(fake));
}

static void nothing_is_kept_in_a_context_of_its_own(void **state) {
  (void)state;
  struct cb_session *session = open_here(); /* no context is current: the primary one */
  use(session, 1);
  cb_session_release(session);
  assert_true(fake_is_clean(fake));
  cb_session_trim();
  assert_int_equal(fake->contexts, 0);
}

static void nothing_is_taken_from_a_context_that_is_gone(void **state) {
  (void)state;
  for (int round = 0; round < 3; round++) {
    app_set_current(0);
    struct cb_session *session = open_here();
    use(session, 1);
    if (round == 2) app_end_context(0); /* while the session is there */
    cb_session_release(session);
    app_end_context(0);
    app_set_current(0); /* at the same address */
    assert_int_equal(fake->pinned + fake->modules + fake->blocks, 0);
    if (round) {
      session = open_here();
      use(session, 2);
      cb_session_release(session);
    }
    cb_session_trim();
    assert_true(fake_is_clean(fake));
  }
}

static void refused_pinned_memory_is_asked_for_again(void **state) {
  (void)state;
  app_set_current(0);
  struct cb_session *session = open_here();
  struct cb_diag diag = {0};
  assert_ok(cb_device_enter(session->device, &diag));
  fake->calls = 0;
  fake->failure = CB_CU_OUT_OF_MEMORY;
  fake->fail_at = 1;
  assert_false(cb_staging_prepare(session->device->staging));
  fake->fail_at = 0;
  cb_device_leave(session->device);
  cb_session_release(session);
  session = open_here();
  use(session, 1);
  assert_true(fake->pinned > 0);
  cb_session_release(session);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_fake, check_fake)
  const struct CMUnitTest tests[] = {
      TEST(short_and_long_uploads_arrive),
      TEST(refused_pinned_memory_is_done_without),
      TEST(failures_are_said_and_leave_nothing),
      TEST(threads_upload_side_by_side),
      TEST(every_shape_brings_every_byte),
      TEST(the_next_session_finds_what_the_last_one_had),
      TEST(nothing_is_kept_in_a_context_of_its_own),
      TEST(nothing_is_taken_from_a_context_that_is_gone),
      TEST(refused_pinned_memory_is_asked_for_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
