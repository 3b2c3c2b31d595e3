// SPDX-License-Identifier: Apache-2.0
/* The control, the list of things, contexts, and how every call begins: see state.h. */
#include "tests/fake/state.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const struct fake_control fresh = {
    .devices = 1, .capability = 90, .memory = (size_t)1 << 30, .nvrtc_major = 13, .registers = 40, .version = 13000};
struct fake_control state = {
    .devices = 1, .capability = 90, .memory = (size_t)1 << 30, .nvrtc_major = 13, .registers = 40, .version = 13000};
EXPORT struct fake_control *const fake_control = &state;

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP; /* a launch's hook calls in again */

int lock_state(void) {
  pthread_mutex_lock(&mutex);
  return 1;
}

void unlock_state(const int *held) {
  if (*held) pthread_mutex_unlock(&mutex);
}

unsigned misuse(unsigned result, const char *format, ...) {
  va_list arguments;
  if (state.misuses++) return result;
  va_start(arguments, format);
  vsnprintf(state.misuse, sizeof state.misuse, format, arguments);
  va_end(arguments);
  return result;
}

/* ---- things */

static struct thing *things;

struct thing *first_thing(void) {
  return things;
}

static long *counter(enum kind kind) {
  static long kernels;
  long *const counters[] = {
      [BLOCK] = &state.blocks, [PINNED] = &state.pinned,  [MODULE] = &state.modules,
      [KERNEL] = &kernels,     [STREAM] = &state.streams, [EVENT] = &state.events,
      [GRAPH] = &state.graphs, [EXEC] = &state.graphs,    [PROGRAM] = &state.programs,
  };
  return counters[kind];
}

struct thing *create(enum kind kind, int device) {
  struct thing *thing = calloc(1, sizeof *thing);
  if (!thing) abort();
  thing->kind = kind;
  thing->device = device;
  thing->last = &thing->first;
  thing->next = things;
  things = thing;
  ++*counter(kind);
  return thing;
}

struct thing *find(const void *handle, enum kind kind) {
  for (struct thing *thing = things; thing; thing = thing->next)
    if (thing == handle && thing->kind == kind) return thing;
  return NULL;
}

void destroy(struct thing *thing) {
  struct thing **at = &things;
  while (*at != thing) at = &(*at)->next;
  *at = thing->next;
  if (!thing->app) --*counter(thing->kind);
  for (struct thing *kernel = thing->kind == MODULE ? things : NULL, *next; kernel; kernel = next) {
    next = kernel->next;
    if (kernel->kind == KERNEL && kernel->module == thing) destroy(kernel);
  }
  if (thing->kind == BLOCK)
    release_block(thing);
  else
    free(thing->bytes);
  free_works(thing->first);
  free(thing->log);
  free(thing->ptx);
  free(thing);
}

/* ---- contexts. A thread has a stack of them; what the application set lies below what the library pushed.
 */

struct context contexts[FAKE_DEVICES];

void begin_context(int device) {
  static unsigned long long last; /* over fake_reset, too */
  if (!contexts[device].id) contexts[device].id = ++last;
}

struct stack {
  long generation;
  int depth, devices[64];
};
static _Thread_local struct stack stack;
static long generation; /* of the stacks: fake_reset forgets those of all threads */

static struct stack *own_stack(void) {
  if (stack.generation != generation) stack = (struct stack){.generation = generation};
  return &stack;
}

int current_device(void) {
  const struct stack *own = own_stack();
  return own->depth ? own->devices[own->depth - 1] : -1;
}

int capability_of(int device) {
  return state.capabilities[device] ? state.capabilities[device] : state.capability;
}

static int device_of_context(const void *context) {
  for (int d = 0; d < state.devices; d++)
    if (context == &contexts[d]) return contexts[d].retained + contexts[d].app_retained ? d : -1;
  return -1;
}

void release_leftovers(int device) {
  for (const struct thing *thing = things; thing; thing = thing->next)
    if (thing->device == device && thing->kind != KERNEL && thing->kind != PROGRAM && !thing->app) {
      misuse(SUCCESS, "something is left in a context that was released");
      return;
    }
}

static unsigned push(int device) {
  struct stack *own = own_stack();
  if (own->depth == sizeof own->devices / sizeof *own->devices) abort();
  own->devices[own->depth++] = device;
  return SUCCESS;
}

EXPORT unsigned cuCtxPushCurrent_v2(void *context) {
  ENTER;
  const int device = device_of_context(context);
  if (device < 0) return misuse(INVALID_CONTEXT, "no context to push");
  state.pushed++;
  return push(device);
}

EXPORT unsigned cuCtxPopCurrent_v2(void **context) {
  LOCK;
  struct stack *own = own_stack();
  const unsigned result = enter(__func__);
  if (!own->depth || !state.pushed) return misuse(INVALID_CONTEXT, "no context to pop");
  state.pushed--;
  *context = &contexts[own->devices[--own->depth]];
  return result;
}

EXPORT unsigned cuCtxGetCurrent(void **context) {
  ENTER;
  const int device = current_device();
  *context = device < 0 ? NULL : &contexts[device];
  return SUCCESS;
}

EXPORT unsigned cuCtxSetCurrent(void *context) {
  ENTER;
  struct stack *own = own_stack();
  const int device = device_of_context(context);
  if (context && device < 0) return misuse(INVALID_CONTEXT, "no context to set");
  if (own->depth) own->depth--;
  return context ? push(device) : SUCCESS;
}

EXPORT void fake_set_current(int device) {
  LOCK;
  own_stack()->depth = 0;
  if (device < 0 || device >= state.devices) return;
  contexts[device].app_retained = 1;
  begin_context(device);
  push(device);
}

EXPORT unsigned cuCtxGetId(void *context, unsigned long long *id) {
  ENTER;
  const int device = context ? device_of_context(context) : current_device();
  if (device < 0) return misuse(INVALID_CONTEXT, "no context to give its id");
  *id = contexts[device].id;
  return SUCCESS;
}

EXPORT void fake_end_context(int device) {
  LOCK;
  for (struct thing *thing = things, *next; thing; thing = next) {
    next = thing->next;
    if (thing->device != device || thing->kind == KERNEL || thing->kind == PROGRAM) continue;
    destroy(thing);
    next = things; /* a module takes its kernels along */
  }
  own_stack()->depth = 0;
  state.contexts -= contexts[device].retained;
  contexts[device] = (struct context){0};
}

/* ---- how every call begins */

unsigned enter(const char *function) {
  if (++state.calls != state.fail_at) return SUCCESS;
  snprintf(state.failed, sizeof state.failed, "%s", function);
  return state.failure;
}

unsigned enter_current(const char *function) {
  const int device = current_device();
  const unsigned result = enter(function);
  if (result) return result;
  if (device < 0) return misuse(INVALID_CONTEXT, "no context is current in %s", function);
  return contexts[device].failure;
}

unsigned enter_unsafe(const char *function) {
  const unsigned result = enter_current(function);
  return result || !forbids_unsafe() ? result : CAPTURE_UNSUPPORTED;
}

/* ---- the control from outside */

EXPORT void fake_reset(void) {
  LOCK;
  forget_captures();
  forget_queues();
  while (things) destroy(things);
  memset(contexts, 0, sizeof contexts);
  generation++;
  state = fresh;
}

EXPORT void fake_trap_taken(void) {
  LOCK;
  state.traps = 0;
  state.trap[0] = 0;
}

EXPORT const char *fake_complaint(void) {
  return state.traps ? state.trap : state.misuse;
}

enum width { INT, UNSIGNED, LONG, SIZE };
#define MEMBER(name, width)                                                                                  \
  { #name, &state.name, width }
static const struct {
  const char *name;
  void *place;
  enum width width;
} members[] = {
    MEMBER(contexts, LONG),
    MEMBER(pushed, LONG),
    MEMBER(blocks, LONG),
    MEMBER(pinned, LONG),
    MEMBER(modules, LONG),
    MEMBER(streams, LONG),
    MEMBER(events, LONG),
    MEMBER(graphs, LONG),
    MEMBER(programs, LONG),
    MEMBER(bytes, SIZE),
    MEMBER(calls, LONG),
    MEMBER(launches, LONG),
    MEMBER(executed, LONG),
    MEMBER(waits, LONG),
    MEMBER(allocations, LONG),
    MEMBER(compilations, LONG),
    MEMBER(line_infos, LONG),
    MEMBER(graph_launches, LONG),
    MEMBER(copies_to_device, LONG),
    MEMBER(copies_to_host, LONG),
    MEMBER(fills, LONG),
    MEMBER(misuses, LONG),
    MEMBER(traps, LONG),
    MEMBER(fail_at, LONG),
    MEMBER(failure, UNSIGNED),
    MEMBER(failing_compilations, LONG),
    MEMBER(turns, LONG),
    MEMBER(version, INT),
    MEMBER(devices, INT),
    MEMBER(capability, INT),
    MEMBER(memory, SIZE),
    MEMBER(nvrtc_major, INT),
    MEMBER(nvrtc_minor, INT),
    MEMBER(registers, INT),
    MEMBER(stack_bytes, INT),
    MEMBER(spare_blocks, INT),
    MEMBER(clock_ns, LONG),
    MEMBER(scalar_ns, LONG),
    MEMBER(unrun, INT),
    MEMBER(lazy, INT),
};
enum { MEMBERS = sizeof members / sizeof *members };

static int member(const char *name) {
  int at = 0;
  while (at < MEMBERS && strcmp(members[at].name, name)) at++;
  return at;
}

EXPORT int fake_set(const char *name, long value) {
  LOCK;
  const int at = member(name);
  if (at == MEMBERS) return 0;
  switch (members[at].width) {
  case INT:
  case UNSIGNED:
    *(int *)members[at].place = (int)value;
    break;
  default:
    *(long *)members[at].place = value;
  }
  return 1;
}

EXPORT long fake_get(const char *name) {
  LOCK;
  const int at = member(name);
  if (at == MEMBERS) return -1;
  return members[at].width <= UNSIGNED ? *(int *)members[at].place : *(long *)members[at].place;
}

/* "devices=2,capability=80": for programs that know nothing of the fake. */
__attribute__((constructor)) static void set_members(void) {
  const char *settings = getenv("CBGEN_FAKE_SET");
  char *copy = strdup(settings ? settings : ""), *rest = NULL;
  for (char *word = copy ? strtok_r(copy, ",", &rest) : NULL; word; word = strtok_r(NULL, ",", &rest)) {
    char *value = strchr(word, '=');
    if (value) *value++ = 0;
    if (!value || !fake_set(word, strtol(value, NULL, 10)))
      fprintf(stderr, "CBGEN_FAKE_SET: the fake GPU has no '%s' to set\n", word);
  }
  free(copy);
}

/* A trap or, on request, a misuse that nobody took note of must not pass for success. */
__attribute__((destructor)) static void complain(void) {
  const int strict = getenv("CBGEN_FAKE_STRICT") && *getenv("CBGEN_FAKE_STRICT");
  if (!state.traps && !(strict && state.misuses)) return;
  fprintf(stderr, "the fake GPU complains: %s\n", fake_complaint());
  fflush(NULL);
  _exit(99);
}
