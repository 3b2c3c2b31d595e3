// SPDX-License-Identifier: Apache-2.0
/* Runs a file of jobs (jobs.h): `program FILE`. The kernels are those of the executable, in the table
 * `emulated_kernels` that the library writes at the end of a batch. */
#include "driver.h"

#include "emulation.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static char *file;
static const char *file_name;

static double seconds() {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void set_timer(double limit) {
  struct itimerval timer = {};
  timer.it_value.tv_sec = (time_t)limit;
  timer.it_value.tv_usec = (suseconds_t)((limit - (double)(time_t)limit) * 1e6);
  setitimer(ITIMER_PROF, &timer, nullptr);
}

static void *on_device(uint64_t offset, uint64_t bytes) {
  void *p = nullptr;
  if (emulated::allocate(&p, bytes))
    stop(EMULATION_MEMORY, "out of memory for a vector of %zu bytes", (size_t)bytes);
  if (bytes) memcpy(p, file + offset, bytes);
  return p;
}

static void refuse(emulation_job &job, emulation_state state, const char *message) {
  job.state = state;
  snprintf(job.message, sizeof job.message, "%s", message);
}

static void compare(emulation_job &job, const char *y, size_t element) {
  const char *first = file + job.result;
  if (!job.y_bytes || !memcmp(first, y, job.y_bytes)) return;
  for (job.row = 0; !memcmp(first + job.row * element, y + job.row * element, element);) job.row++;
  refuse(job, EMULATION_UNREPEATABLE, "a later product of the same vectors gave other bits");
}

static const char *product(const emulation_job &job, const EmulatedKernel &kernel, void *matrix, const void *x,
                           void *y) {
  if (job.heads) return kernel.multiply_heads(matrix, x, y, job);
  if (!job.columns.count) return kernel.multiply(matrix, x, y, job);
  if (!kernel.multiply_many) return "the text has no kernels for several vectors";
  return kernel.multiply_many(matrix, x, y, job);
}

// A product of an x full of NaN, whose result nobody sees: whatever a kernel keeps from one product to the
// next in carry slots or counters is spoilt by it.
static void spoil(const emulation_job &job, const EmulatedKernel &kernel, void *matrix) {
  void *x = nullptr, *y = on_device(job.y, job.y_bytes);
  emulated::allocate(&x, job.x_bytes); // comes filled with NaN
  product(job, kernel, matrix, x, y);
  emulated::release(x);
  emulated::release(y);
}

// One product whose numbers are nodes: its y, and the file of nodes beside that of the jobs.
static void trace(emulation_job &job, const EmulatedKernel &kernel, void *matrix, void *x) {
  const size_t cols = job.x_bytes / kernel.element, rows = job.y_bytes / kernel.element;
  char *y = (char *)on_device(job.y, job.y_bytes), path[4608];
  unsigned long *nodes = (unsigned long *)calloc(rows + 1, sizeof *nodes);
  if (!nodes) stop(EMULATION_MEMORY, "out of memory for a trace of %zu rows", rows);
  seed_machine(job.seed);
  memcpy(machine.only, job.only, sizeof machine.only);
  kernel.take(x, cols, EMULATION_X);
  kernel.take(y, rows, EMULATION_Y);
  const char *message = kernel.multiply(matrix, x, y, job);
  kernel.give(y, rows, nodes);
  if (message) refuse(job, EMULATION_REFUSED, message);
  else if (rows) memcpy(file + job.result, y, job.y_bytes);
  snprintf(path, sizeof path, "%s.trace", file_name);
  write_trace(path, nodes, rows);
  free(nodes);
  emulated::release(y);
}

static void multiply(emulation_job &job, const EmulatedKernel &kernel, void *matrix, const void *x) {
  for (unsigned p = 0; p < job.products && job.state == EMULATION_RUNNING; p++) {
    seed_machine(job.seed + p);
    if (p == 1) spoil(job, kernel, matrix);
    char *y = (char *)on_device(job.y, job.y_bytes);
    const char *message = product(job, kernel, matrix, x, y);
    if (message)
      refuse(job, EMULATION_REFUSED, message);
    else if (!p && job.y_bytes)
      memcpy(file + job.result, y, job.y_bytes);
    else if (job.repeatable)
      compare(job, y, kernel.element);
    emulated::release(y);
  }
}

static void run(emulation_job &job) {
  const EmulatedKernel &kernel = emulated_kernels[job.kernel];
  void *matrix = nullptr;
  job.state = EMULATION_RUNNING;
  const char *message = kernel.load(&matrix, file + job.data, job.data_bytes);
  if (message) refuse(job, EMULATION_REFUSED, message);
  void *x = on_device(job.x, job.x_bytes);
  const double start = seconds();
  if (!message && kernel.take) trace(job, kernel, matrix, x);
  else if (!message) multiply(job, kernel, matrix, x);
  job.seconds = seconds() - start;
  emulated::release(x);
  kernel.free(matrix);
  if (live_allocations() && job.state == EMULATION_RUNNING)
    refuse(job, EMULATION_LEAKED, "the free function leaves device memory allocated");
  if (job.state == EMULATION_RUNNING) job.state = EMULATION_DONE;
}

int main(int argc, char **argv) {
  struct stat status;
  file_name = argv[1];
  const int descriptor = argc == 2 ? open(argv[1], O_RDWR) : -1;
  if (descriptor < 0 || fstat(descriptor, &status)) return EMULATION_USAGE;
  file = (char *)mmap(nullptr, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (file == MAP_FAILED) return EMULATION_USAGE;
  const emulation_header &header = *(emulation_header *)file;
  if (header.magic != EMULATION_MAGIC) return EMULATION_USAGE;
  emulation_job *jobs = (emulation_job *)(file + sizeof header);
  for (uint64_t i = 0; i < header.jobs; i++) {
    if (jobs[i].state != EMULATION_WAITING) continue;
    set_timer(header.processor_seconds);
    run(jobs[i]);
  }
  return EMULATION_OK;
}
