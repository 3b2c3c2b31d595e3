// SPDX-License-Identifier: Apache-2.0
/* Streams, events, and work; captures and graphs: see state.h.
 *
 * Work is done within the call that asks for it, so any order that streams and events demand is kept. While a
 * stream is captured its work is recorded instead: in the order of the calls, which respects every
 * dependency, so a graph is a list. A launch takes 5 µs on the clock of the events.
 */
#include "tests/fake/state.h"

static void *const legacy_stream = (void *)1, *const thread_stream = (void *)2;

static int is_legacy(const void *stream) {
  return !stream || stream == legacy_stream;
}

unsigned check_stream(void *stream) {
  const struct thing *thing = find(stream, STREAM);
  if (is_legacy(stream) || stream == thread_stream) return SUCCESS;
  if (!thing) return misuse(INVALID_HANDLE, "a stream that is none");
  if (thing->device != current_device())
    return misuse(INVALID_HANDLE, "a stream of GPU %d in the context of GPU %d", thing->device,
                  current_device());
  return SUCCESS;
}

/* ---- work */

static unsigned check_work(const struct work *work) {
  return work->kind == LAUNCH ? check_launch(work) : check_copy(work);
}

static unsigned perform(const struct work *work) {
  return work->kind == LAUNCH ? perform_launch(work) : perform_copy(work);
}

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

static struct work *copy_work(const struct work *work) {
  struct work *copy = malloc(sizeof *copy);
  if (!copy) abort();
  *copy = *work;
  copy->next = NULL;
  if (work->kind == LAUNCH)
    copy->launch.parameters = copy->parameters =
        copy_parameters(work->kernel->kernel, work->launch.parameters);
  return copy;
}

void free_works(struct work *work) {
  for (struct work *next; work; work = next) {
    next = work->next;
    free(work->parameters);
    free(work);
  }
}

/* ---- captures */

enum mode { GLOBAL, THREAD_LOCAL, RELAXED };
enum status { NONE, ACTIVE, INVALIDATED };

struct capture {
  struct thing *origin;
  enum mode mode;
  const void *thread; /* the address of its own_mode */
  int invalidated;
  unsigned long long id;
  long position;
  struct work *first, **last;
  struct capture *next;
};
static struct capture *captures;
static _Thread_local enum mode own_mode = GLOBAL;

static unsigned spoil(struct capture *capture, unsigned result) {
  capture->invalidated = 1;
  return result;
}

int forbids_unsafe(void) {
  int forbidden = 0;
  for (struct capture *c = captures; c && own_mode != RELAXED; c = c->next) {
    const int own = c->thread == &own_mode;
    if (own ? c->mode == RELAXED : own_mode == THREAD_LOCAL || c->mode != GLOBAL) continue;
    c->invalidated = 1;
    forbidden = 1;
  }
  return forbidden;
}

/* The legacy stream waits for every blocking stream, so it cannot be used while one of them is captured. */
static unsigned check_legacy(void) {
  for (struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == STREAM && thing->capture && !(thing->flags & 1) && thing->device == current_device())
      return spoil(thing->capture, CAPTURE_IMPLICIT);
  return SUCCESS;
}

static void end_capture(struct capture *capture) {
  struct capture **at = &captures;
  while (*at != capture) at = &(*at)->next;
  *at = capture->next;
  for (struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->capture == capture) thing->capture = NULL;
  free_works(capture->first);
  free(capture);
}

void forget_captures(void) {
  while (captures) end_capture(captures);
}

static unsigned record(struct thing *stream, const struct work *work) {
  struct capture *capture = stream->capture;
  if (capture->invalidated) return CAPTURE_INVALIDATED;
  if (work->kind == LAUNCH && !work->kernel->kernel)
    return misuse(spoil(capture, NOT_SUPPORTED), "a kernel for the hook alone cannot be captured");
  *capture->last = copy_work(work);
  capture->last = &(*capture->last)->next;
  stream->position = ++capture->position;
  return SUCCESS;
}

unsigned submit(const struct work *work, void *stream) {
  unsigned result = check_stream(stream);
  struct thing *thing = find(stream, STREAM);
  if (!result && is_legacy(stream)) result = check_legacy();
  if (!result) result = check_work(work);
  if (result) return result;
  return thing && thing->capture ? record(thing, work) : perform(work);
}

EXPORT unsigned cuThreadExchangeStreamCaptureMode(unsigned *mode) {
  ENTER;
  const enum mode before = own_mode;
  if (*mode > RELAXED) return misuse(INVALID_VALUE, "no mode of capturing");
  own_mode = (enum mode) * mode;
  *mode = (unsigned)before;
  return SUCCESS;
}

EXPORT unsigned cuStreamBeginCapture_v2(void *stream, unsigned mode) {
  static unsigned long long captures_begun;
  ENTER_CURRENT;
  struct thing *thing = find(stream, STREAM);
  if (check_stream(stream)) return INVALID_HANDLE;
  if (!thing) return CAPTURE_UNSUPPORTED; /* the legacy stream */
  if (thing->capture || mode > RELAXED) return ILLEGAL_STATE;
  struct capture *capture = calloc(1, sizeof *capture);
  if (!capture) abort();
  *capture =
      (struct capture){.origin = thing, .mode = (enum mode)mode, .thread = &own_mode, .next = captures};
  capture->id = ++captures_begun;
  capture->last = &capture->first;
  captures = thing->capture = capture;
  thing->position = thing->joined = 0;
  return SUCCESS;
}

static int is_joined(const struct capture *capture) {
  for (const struct thing *thing = first_thing(); thing; thing = thing->next)
    if (thing->kind == STREAM && thing->capture == capture && thing != capture->origin &&
        thing->joined < thing->position)
      return 0;
  return 1;
}

EXPORT unsigned cuStreamEndCapture(void *stream, void **graph) {
  ENTER_CURRENT;
  struct thing *thing = find(stream, STREAM);
  struct capture *capture = thing ? thing->capture : NULL;
  *graph = NULL;
  if (!capture || capture->origin != thing) return ILLEGAL_STATE;
  if (capture->mode != RELAXED && capture->thread != &own_mode) return spoil(capture, CAPTURE_WRONG_THREAD);
  const unsigned result = capture->invalidated ? CAPTURE_INVALIDATED
                          : is_joined(capture) ? SUCCESS
                                               : CAPTURE_UNJOINED;
  if (!result) {
    struct thing *made = create(GRAPH, thing->device);
    made->first = capture->first;
    capture->first = NULL;
    *graph = made;
  }
  end_capture(capture);
  return result;
}

static unsigned status_of(void *stream, unsigned *status, unsigned long long *id) {
  const struct thing *thing = find(stream, STREAM);
  const struct capture *capture = thing ? thing->capture : NULL;
  unsigned result = check_stream(stream);
  if (!result && is_legacy(stream)) result = check_legacy();
  if (result) return result;
  *status = !capture ? NONE : capture->invalidated ? INVALIDATED : ACTIVE;
  if (id && capture) *id = capture->id;
  return SUCCESS;
}

EXPORT unsigned cuStreamIsCapturing(void *stream, unsigned *status) {
  ENTER_CURRENT;
  return status_of(stream, status, NULL);
}

EXPORT unsigned cuStreamGetCaptureInfo_v2(void *stream, unsigned *status, unsigned long long *id,
                                          void **graph, const void **dependencies, size_t *count) {
  ENTER_CURRENT;
  if (graph || dependencies || count) return misuse(NOT_SUPPORTED, "the graph under capture is asked for");
  return status_of(stream, status, id);
}

EXPORT unsigned cuStreamGetCaptureInfo_v3(void *stream, unsigned *status, unsigned long long *id,
                                          void **graph, const void **dependencies, const void **edges,
                                          size_t *count) {
  ENTER_CURRENT;
  if (graph || dependencies || edges || count)
    return misuse(NOT_SUPPORTED, "the graph under capture is asked for");
  return status_of(stream, status, id);
}

/* ---- graphs */

EXPORT unsigned cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags) {
  ENTER_CURRENT;
  const struct thing *thing = find(graph, GRAPH);
  if (!thing || flags) return misuse(INVALID_VALUE, "a graph that is none, or flags");
  struct thing *made = create(EXEC, thing->device);
  for (const struct work *work = thing->first; work; work = work->next) {
    *made->last = copy_work(work);
    made->last = &(*made->last)->next;
  }
  *exec = made;
  return SUCCESS;
}

EXPORT unsigned cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
  ENTER_CURRENT;
  const struct thing *thing = find(graph, GRAPH);
  if (!thing || nodes) return misuse(INVALID_VALUE, "a graph that is none, or a list for its nodes");
  *count = 0;
  for (const struct work *work = thing->first; work; work = work->next) ++*count;
  return SUCCESS;
}

EXPORT unsigned cuGraphLaunch(void *exec, void *stream) {
  ENTER_CURRENT;
  const struct thing *thing = find(exec, EXEC), *on = find(stream, STREAM);
  if (!thing) return misuse(INVALID_VALUE, "a graph launched that is none");
  unsigned result = check_stream(stream);
  if (!result && is_legacy(stream)) result = check_legacy();
  if (!result && on && on->capture) result = misuse(NOT_SUPPORTED, "a graph launched into a capture");
  for (const struct work *work = thing->first; work && !result; work = work->next) {
    result = check_work(work);
    if (!result) result = perform(work);
  }
  if (!result) state.graph_launches++;
  return result;
}

static unsigned destroy_handle(void *handle, enum kind kind, unsigned result) {
  struct thing *thing = find(handle, kind);
  if (!thing) return misuse(INVALID_HANDLE, "a stream, event or graph destroyed that is none");
  if (thing->app) return misuse(INVALID_HANDLE, "the application's stream destroyed");
  if (kind == STREAM && thing->capture)
    return misuse(spoil(thing->capture, CAPTURE_UNSUPPORTED), "a stream destroyed that is captured");
  destroy(thing);
  return result;
}

EXPORT unsigned cuGraphDestroy(void *graph) {
  LOCK;
  return destroy_handle(graph, GRAPH, enter(__func__));
}

EXPORT unsigned cuGraphExecDestroy(void *exec) {
  LOCK;
  return destroy_handle(exec, EXEC, enter(__func__));
}

/* ---- streams */

static unsigned create_handle(void **handle, enum kind kind, unsigned flags) {
  struct thing *thing = create(kind, current_device());
  thing->flags = flags;
  *handle = thing;
  return SUCCESS;
}

EXPORT unsigned cuStreamCreate(void **stream, unsigned flags) {
  ENTER_CURRENT;
  return flags > 1 ? misuse(INVALID_VALUE, "flags of a stream") : create_handle(stream, STREAM, flags);
}

EXPORT unsigned cuStreamDestroy_v2(void *stream) {
  LOCK;
  return destroy_handle(stream, STREAM, enter_current(__func__));
}

/* Waiting is over at once; what remains is whether it is allowed. */
unsigned wait_for_stream(void *stream) {
  struct thing *thing = find(stream, STREAM);
  unsigned result = check_stream(stream);
  if (!result && is_legacy(stream)) result = check_legacy();
  if (!result && thing && thing->capture) result = spoil(thing->capture, CAPTURE_UNSUPPORTED);
  return result ? result : contexts[current_device()].failure;
}

EXPORT unsigned cuStreamSynchronize(void *stream) {
  ENTER_CURRENT;
  state.waits++;
  return wait_for_stream(stream);
}

EXPORT unsigned cuStreamQuery(void *stream) {
  ENTER_CURRENT;
  return wait_for_stream(stream);
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
  if (thing && thing->app && !thing->capture)
    destroy(thing);
  else
    misuse(INVALID_HANDLE, "the application destroys a stream that is not its own, or captured");
}

/* ---- events */

EXPORT unsigned cuEventCreate(void **event, unsigned flags) {
  ENTER_CURRENT;
  return flags > 7 ? misuse(INVALID_VALUE, "flags of an event") : create_handle(event, EVENT, flags);
}

EXPORT unsigned cuEventDestroy_v2(void *event) {
  LOCK;
  return destroy_handle(event, EVENT, enter_current(__func__));
}

EXPORT unsigned cuEventRecord(void *event, void *stream) {
  ENTER_CURRENT;
  struct thing *thing = find(event, EVENT), *on = find(stream, STREAM);
  if (!thing) return misuse(INVALID_HANDLE, "an event that is none");
  unsigned result = check_stream(stream);
  if (!result && is_legacy(stream)) result = check_legacy();
  if (result) return result;
  if (thing->device != current_device()) return misuse(INVALID_HANDLE, "an event of another GPU recorded");
  thing->capture = on ? on->capture : NULL;
  thing->source = thing->capture ? on : NULL;
  thing->position = on ? on->position : 0;
  thing->stamp = thing->capture ? 0 : 1 + state.launches;
  return SUCCESS;
}

/* Brings the stream into the event's capture, or notes that it waits for a stream of it. */
static unsigned wait_captured(struct thing *stream, const struct thing *event) {
  struct capture *capture = event->capture;
  if (!stream) return spoil(capture, CAPTURE_IMPLICIT);
  if (stream->capture && stream->capture != capture) return spoil(capture, CAPTURE_ISOLATION);
  if (!stream->capture) stream->joined = 0;
  stream->capture = capture;
  stream->position = ++capture->position;
  if (find(event->source, STREAM) && event->source->joined < event->position)
    event->source->joined = event->position;
  return SUCCESS;
}

EXPORT unsigned cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  ENTER_CURRENT;
  struct thing *thing = find(event, EVENT), *on = find(stream, STREAM);
  if (!thing || flags > 1) return misuse(INVALID_HANDLE, "an event that is none, or flags");
  unsigned result = check_stream(stream);
  if (!result && is_legacy(stream)) result = check_legacy();
  if (result) return result;
  if (thing->capture) return wait_captured(on, thing);
  return on && on->capture ? spoil(on->capture, CAPTURE_ISOLATION) : SUCCESS;
}

static unsigned wait_for_event(const void *event) {
  const struct thing *thing = find(event, EVENT);
  if (!thing) return misuse(INVALID_HANDLE, "an event that is none");
  return thing->capture ? spoil(thing->capture, CAPTURED_EVENT) : contexts[thing->device].failure;
}

EXPORT unsigned cuEventSynchronize(void *event) {
  ENTER_CURRENT;
  state.waits++;
  return wait_for_event(event);
}

EXPORT unsigned cuEventQuery(void *event) {
  ENTER_CURRENT;
  return wait_for_event(event);
}

EXPORT unsigned cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  ENTER_CURRENT;
  const struct thing *begin = find(from, EVENT), *end = find(to, EVENT);
  if (!begin || !end || !begin->stamp || !end->stamp)
    return misuse(INVALID_HANDLE, "an event that was not recorded");
  *milliseconds = 0.005f * (float)(end->stamp - begin->stamp) + 0.0001f;
  return SUCCESS;
}
