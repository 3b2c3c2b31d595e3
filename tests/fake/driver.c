// SPDX-License-Identifier: Apache-2.0
/* The driver as a whole, its devices, their primary contexts, and its words for errors: see state.h. */
#include "tests/fake/state.h"

#include <stdio.h>

static int ordinal_of(int device) {
  return device >= FIRST_HANDLE && device < FIRST_HANDLE + state.devices ? device - FIRST_HANDLE : -1;
}

EXPORT unsigned cuInit(unsigned flags) {
  ENTER;
  return flags ? INVALID_VALUE : state.devices ? SUCCESS : NO_DEVICE;
}

EXPORT unsigned cuDriverGetVersion(int *version) {
  ENTER;
  *version = state.version;
  return SUCCESS;
}

EXPORT unsigned cuGetErrorString(unsigned error, const char **text) {
  static _Thread_local char words[64];
  snprintf(words, sizeof words, "the fake driver's error %u", error);
  *text = words;
  return SUCCESS;
}

EXPORT unsigned cuGetErrorName(unsigned error, const char **text) {
  static _Thread_local char name[64];
  snprintf(name, sizeof name, "FAKE_ERROR_%u", error);
  *text = name;
  return SUCCESS;
}

/* ---- devices */

EXPORT unsigned cuDeviceGetCount(int *count) {
  ENTER;
  *count = state.devices;
  return SUCCESS;
}

EXPORT unsigned cuDeviceGet(int *device, int ordinal) {
  ENTER;
  if (ordinal < 0 || ordinal >= state.devices) return misuse(INVALID_DEVICE, "no such device");
  *device = FIRST_HANDLE + ordinal; /* handles are not ordinals */
  return SUCCESS;
}

EXPORT unsigned cuDeviceGetName(char *name, int length, int device) {
  ENTER;
  if (ordinal_of(device) < 0) return misuse(INVALID_DEVICE, "no such device");
  snprintf(name, (size_t)length, "Fake GPU");
  return SUCCESS;
}

EXPORT unsigned cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER;
  const int ordinal = ordinal_of(device);
  if (ordinal < 0) return misuse(INVALID_DEVICE, "no such device");
  const struct {
    int attribute, value;
  } rows[] = {
      {10, 32}, /* warp size */
      {16, MULTIPROCESSORS},
      {38, 1 << 20 /* L2 */},
      {41, 1 /* unified addressing */},
      {75, capability_of(ordinal) / 10},
      {76, capability_of(ordinal) % 10},
      {81, 228 << 10},
      {97, SHARED_PER_BLOCK},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].attribute == attribute) {
      *value = rows[i].value;
      return SUCCESS;
    }
  return misuse(INVALID_VALUE, "attribute %d, which the fake driver does not know", attribute);
}

/* ---- primary contexts */

EXPORT unsigned cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER;
  const int ordinal = ordinal_of(device);
  if (ordinal < 0) return misuse(INVALID_DEVICE, "no such device");
  contexts[ordinal].retained++;
  begin_context(ordinal);
  state.contexts++;
  *context = &contexts[ordinal];
  return SUCCESS;
}

EXPORT unsigned cuDevicePrimaryCtxRelease_v2(int device) {
  LOCK;
  const unsigned result = enter(__func__);
  const int ordinal = ordinal_of(device);
  if (ordinal < 0 || !contexts[ordinal].retained)
    return misuse(INVALID_CONTEXT, "a context released that was not retained");
  state.contexts--;
  if (--contexts[ordinal].retained || contexts[ordinal].app_retained) return result; /* it lives on */
  release_leftovers(ordinal);
  contexts[ordinal] = (struct context){0};
  return result;
}

EXPORT unsigned cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  ENTER;
  const int ordinal = ordinal_of(device);
  if (ordinal < 0) return misuse(INVALID_DEVICE, "no such device");
  *flags = 0;
  *active = contexts[ordinal].retained + contexts[ordinal].app_retained > 0;
  return SUCCESS;
}

EXPORT unsigned cuCtxGetDevice(int *device) {
  ENTER_CURRENT;
  *device = FIRST_HANDLE + current_device();
  return SUCCESS;
}
