// SPDX-License-Identifier: Apache-2.0
/* Work, and the queues of streams: see state.h.
 *
 * Without `lazy` in the control, work is done within the call that asks for it, which keeps every order that
 * streams and events demand. With it, a stream does nothing until something waits for it: whatever reads a
 * result, or gives back what work still needs, without waiting gets it wrong each time. The legacy stream is
 * never lazy: it waits for all blocking streams, and they for it.
 */
#include "tests/fake/state.h"

static void *const legacy_stream = (void *)1, *const thread_stream = (void *)2;

int is_legacy(const void *stream) {
  return !stream || stream == legacy_stream;
}

unsigned check_stream(const void *stream) {
  const struct thing *thing = find(stream, STREAM);
  if (is_legacy(stream) || stream == thread_stream) return SUCCESS;
  if (!thing) return misuse(INVALID_HANDLE, "a stream that is none");
  if (thing->device != current_device())
    return misuse(INVALID_HANDLE, "a stream of GPU %d in the context of GPU %d", thing->device,
                  current_device());
  return SUCCESS;
}

/* ---- work */

static size_t aligned(size_t bytes) {
  return (bytes + 15) / 16 * 16;
}

/* A copy of the list of parameters and of what it points to, in one piece. */
static void **copy_parameters(const struct fake_kernel *kernel, void *const *parameters) {
  size_t count = 0, bytes = 0;
  for (; kernel->parameters[count].bytes; count++) bytes += aligned(kernel->parameters[count].bytes);
  const size_t head = aligned((count + 1) * sizeof(void *));
  char *copy = calloc(1, head + bytes), *at = copy + head;
  if (!copy) abort();
  for (size_t i = 0; i < count; i++) {
    ((void **)(void *)copy)[i] = memcpy(at, parameters[i], kernel->parameters[i].bytes);
    at += aligned(kernel->parameters[i].bytes);
  }
  return (void **)(void *)copy;
}

struct work *append_work(struct thing *list, const struct work *work) {
  struct work *copy = malloc(sizeof *copy);
  if (!copy) abort();
  *copy = *work;
  copy->next = NULL;
  copy->owned = NULL;
  if (work->kind == LAUNCH)
    copy->owned = copy->launch.parameters = copy_parameters(work->kernel->kernel, work->launch.parameters);
  if (work->kind == LOOP) copy->body = copy_body(work->body);
  if (work->kind == BESIDE) {
    copy->owned = malloc(work->bytes);
    if (!copy->owned) abort();
    memcpy(copy->owned, (const void *)(uintptr_t)work->from, work->bytes);
    copy->from = (uint64_t)(uintptr_t)copy->owned;
  }
  *list->last = copy;
  list->last = &copy->next;
  return copy;
}

void free_works(struct work *work) {
  for (struct work *next; work; work = next) {
    next = work->next;
    if (work->kind == LOOP) destroy(work->body);
    free(work->owned);
    free(work);
  }
}

unsigned check_work(const struct work *work) {
  return work->kind == LAUNCH ? check_launch(work) : work->kind >= BESIDE ? SUCCESS : check_copy(work);
}

/* ---- queues. The per-thread stream has one for each GPU, as if there were one thread. */

static struct thing thread_queues[FAKE_DEVICES];

static struct thing *queue_of(void *stream) {
  if (is_legacy(stream)) return NULL;
  if (stream != thread_stream) return find(stream, STREAM);
  struct thing *queue = &thread_queues[current_device()];
  if (!queue->last)
    *queue = (struct thing){.kind = STREAM, .device = current_device(), .last = &queue->first};
  return queue;
}

/* Until the event's record number `number` has come by. */
static void finish_event(const struct thing *event, long number) {
  while (event->done < number && event->source && event->source->first) finish(event->source);
}

/* An event may be destroyed before its record or a wait comes by: nobody can ask for it then. */
unsigned perform(const struct work *work) {
  struct thing *event = work->kind >= RECORD ? find(work->event, EVENT) : NULL;
  switch (work->kind) {
  case LAUNCH:
    return perform_launch(work);
  case LOOP:
    return perform_loop(work);
  case BESIDE:
    work->run((const void *)(uintptr_t)work->from);
    return SUCCESS;
  case RECORD:
    if (event) event->stamp = state.clock_ns;
    if (event && event->done < work->number) event->done = work->number;
    return SUCCESS;
  case WAIT:
    if (event) finish_event(event, work->number);
    return SUCCESS;
  default:
    return perform_copy(work);
  }
}

void finish(struct thing *queue) {
  while (queue->first) {
    struct work *const work = queue->first;
    queue->first = work->next; /* first: waiting may lead back here */
    if (!queue->first) queue->last = &queue->first;
    work->next = NULL;
    if (!contexts[work->device].failure && !check_work(work)) perform(work);
    free_works(work);
  }
}

void finish_device(int device, int blocking_only) {
  for (struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == STREAM && thing->device == device && !(blocking_only && thing->flags & 1))
      finish(thing);
  if (thread_queues[device].last) finish(&thread_queues[device]);
}

void forget_queues(void) {
  for (int d = 0; d < FAKE_DEVICES; d++) free_works(thread_queues[d].first);
  memset(thread_queues, 0, sizeof thread_queues);
}

/* Pageable memory is read before a copy's call returns, and written before it does. */
static int is_pageable(uint64_t pointer, size_t bytes) {
  return !view(pointer, bytes, -1);
}

static int must_be_done_now(const struct work *work) {
  if (!state.lazy) return 1;
  if (work->kind == LAUNCH) return !work->kernel->kernel; /* whose parameters have unknown sizes */
  return work->kind == COPY_TO_HOST && is_pageable(work->to, work->bytes);
}

static unsigned enqueue(struct thing *queue, const struct work *work) {
  struct work *const copy = append_work(queue, work);
  if (work->kind != COPY_TO_DEVICE || !work->bytes || !is_pageable(work->from, work->bytes)) return SUCCESS;
  copy->owned = malloc(work->bytes);
  if (!copy->owned) abort();
  memcpy(copy->owned, (const void *)(uintptr_t)work->from, work->bytes);
  copy->from = (uint64_t)(uintptr_t)copy->owned;
  return SUCCESS;
}

unsigned submit(const struct work *work, void *stream) {
  unsigned result = check_stream(stream);
  if (!result && is_legacy(stream)) result = check_legacy();
  if (!result) result = check_work(work);
  if (result) return result;
  struct thing *queue = queue_of(stream);
  if (queue && queue->capture && work->kind < RECORD) return record(queue, work);
  if (!queue) finish_device(work->device, 1);
  if (queue && !must_be_done_now(work)) return enqueue(queue, work);
  if (queue) finish(queue);
  return perform(work);
}

EXPORT unsigned fake_work(void *stream, void (*run)(const void *data), const void *data, size_t bytes) {
  LOCK;
  if (current_device() < 0) return INVALID_CONTEXT;
  const struct work work = {
      .kind = BESIDE, .device = current_device(), .run = run, .from = (uint64_t)(uintptr_t)data, .bytes = bytes};
  return submit(&work, stream);
}

/* ---- waiting */

static unsigned check_wait(void *stream) {
  struct thing *thing = find(stream, STREAM);
  unsigned result = check_stream(stream);
  if (!result && is_legacy(stream)) result = check_legacy();
  if (!result && thing && thing->capture) result = spoil(thing->capture, CAPTURE_UNSUPPORTED);
  return result;
}

unsigned wait_for_stream(void *stream) {
  const unsigned result = check_wait(stream);
  if (result) return result;
  if (is_legacy(stream))
    finish_device(current_device(), 1);
  else
    finish(queue_of(stream));
  return contexts[current_device()].failure;
}

/* Says once that work is left, and then does it, so that who asks again and again gets an end. */
static unsigned ask(struct thing *queue) {
  const int left = queue && queue->first;
  if (left) finish(queue);
  return left ? NOT_READY : contexts[current_device()].failure;
}

EXPORT unsigned cuStreamSynchronize(void *stream) {
  ENTER_CURRENT;
  state.waits++;
  return wait_for_stream(stream);
}

EXPORT unsigned cuStreamQuery(void *stream) {
  ENTER_CURRENT;
  const unsigned result = check_wait(stream);
  return result ? result : ask(queue_of(stream));
}

EXPORT unsigned cuCtxSynchronize(void) {
  ENTER_UNSAFE;
  state.waits++;
  finish_device(current_device(), 0);
  return contexts[current_device()].failure;
}

/* ---- events */

EXPORT unsigned cuEventRecord(void *event, void *stream) {
  ENTER_CURRENT;
  struct thing *thing = find(event, EVENT);
  if (!thing) return misuse(INVALID_HANDLE, "an event that is none");
  if (thing->device != current_device()) return misuse(INVALID_HANDLE, "an event of another GPU recorded");
  const struct work work = {
      .kind = RECORD, .device = thing->device, .event = thing, .number = thing->asked + 1};
  const unsigned result = submit(&work, stream);
  if (result) return result;
  struct thing *queue = queue_of(stream);
  thing->asked++;
  thing->capture = queue ? queue->capture : NULL;
  thing->source = queue;
  thing->position = queue ? queue->position : 0;
  return SUCCESS;
}

EXPORT unsigned cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  ENTER_CURRENT;
  struct thing *thing = find(event, EVENT), *queue = queue_of(stream);
  if (!thing || flags > 1) return misuse(INVALID_HANDLE, "an event that is none, or flags");
  const unsigned result = check_stream(stream);
  if (result) return result;
  if (thing->capture) return wait_captured(queue, thing);
  if (queue && queue->capture) return spoil(queue->capture, CAPTURE_ISOLATION);
  const struct work work = {.kind = WAIT, .device = current_device(), .event = thing, .number = thing->asked};
  return submit(&work, stream);
}

static unsigned check_event(const void *event) {
  const struct thing *thing = find(event, EVENT);
  if (!thing) return misuse(INVALID_HANDLE, "an event that is none");
  return thing->capture ? spoil(thing->capture, CAPTURED_EVENT) : SUCCESS;
}

EXPORT unsigned cuEventSynchronize(void *event) {
  ENTER_CURRENT;
  state.waits++;
  const unsigned result = check_event(event);
  if (result) return result;
  const struct thing *thing = find(event, EVENT);
  finish_event(thing, thing->asked);
  return contexts[thing->device].failure;
}

EXPORT unsigned cuEventQuery(void *event) {
  ENTER_CURRENT;
  const struct thing *thing = find(event, EVENT);
  const unsigned result = check_event(event);
  return result ? result : ask(thing->done < thing->asked ? thing->source : NULL);
}

EXPORT unsigned cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  ENTER_CURRENT;
  const struct thing *begin = find(from, EVENT), *end = find(to, EVENT);
  if (!begin || !end || !begin->asked || !end->asked || begin->capture || end->capture)
    return misuse(INVALID_HANDLE, "an event that was not recorded");
  if (begin->done < begin->asked || end->done < end->asked) return NOT_READY;
  *milliseconds = 1e-6f * (float)(end->stamp - begin->stamp) + 0.0001f;
  return SUCCESS;
}
