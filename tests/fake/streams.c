// SPDX-License-Identifier: Apache-2.0
/* Streams and events as handles: see state.h. A launch takes 5 µs on the clock of the events. */
#include "tests/fake/state.h"

static unsigned create_handle(void **handle, enum kind kind, unsigned flags) {
  struct thing *thing = create(kind, current_device());
  thing->flags = flags;
  *handle = thing;
  return SUCCESS;
}

unsigned destroy_handle(void *handle, enum kind kind, unsigned result) {
  struct thing *thing = find(handle, kind);
  if (!thing) return misuse(INVALID_HANDLE, "a stream, event or graph destroyed that is none");
  if (thing->app) return misuse(INVALID_HANDLE, "the application's stream destroyed");
  if (kind == STREAM && thing->capture)
    return misuse(spoil(thing->capture, CAPTURE_UNSUPPORTED), "a stream destroyed that is captured");
  if (kind == STREAM) finish(thing); /* its work is done all the same */
  destroy(thing);
  return result;
}

EXPORT unsigned cuStreamCreate(void **stream, unsigned flags) {
  ENTER_CURRENT;
  return flags > 1 ? misuse(INVALID_VALUE, "flags of a stream") : create_handle(stream, STREAM, flags);
}

EXPORT unsigned cuStreamDestroy_v2(void *stream) {
  LOCK;
  return destroy_handle(stream, STREAM, enter_current(__func__));
}

EXPORT unsigned cuStreamGetCtx(void *stream, void **context) {
  ENTER_CURRENT;
  const struct thing *thing = find(stream, STREAM);
  if (!thing && check_stream(stream)) return INVALID_HANDLE;
  *context = &contexts[thing ? thing->device : current_device()];
  return SUCCESS;
}

EXPORT unsigned cuStreamGetFlags(void *stream, unsigned *flags) {
  ENTER_CURRENT;
  const struct thing *thing = find(stream, STREAM);
  if (!thing && check_stream(stream)) return INVALID_HANDLE;
  *flags = thing ? thing->flags : 0;
  return SUCCESS;
}

EXPORT unsigned cuEventCreate(void **event, unsigned flags) {
  ENTER_CURRENT;
  return flags > 7 ? misuse(INVALID_VALUE, "flags of an event") : create_handle(event, EVENT, flags);
}

EXPORT unsigned cuEventDestroy_v2(void *event) {
  LOCK;
  return destroy_handle(event, EVENT, enter_current(__func__));
}

/* ---- the application's streams */

EXPORT void *fake_stream(int device, unsigned flags) {
  LOCK;
  if (device < 0 || device >= state.devices) return NULL;
  struct thing *thing = create(STREAM, device);
  thing->flags = flags;
  thing->app = 1;
  state.streams--;
  return thing;
}

EXPORT void fake_stream_free(void *stream) {
  LOCK;
  struct thing *thing = find(stream, STREAM);
  if (!thing || !thing->app || thing->capture) {
    misuse(INVALID_HANDLE, "the application destroys a stream that is not its own, or captured");
    return;
  }
  finish(thing);
  destroy(thing);
}

EXPORT void fake_wait(int device) {
  LOCK;
  if (device >= 0 && device < state.devices) finish_device(device, 0);
}
