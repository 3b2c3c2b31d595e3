// SPDX-License-Identifier: Apache-2.0
/* Operators of the public interface: life, clones, copies, products, messages. What handles share is a struct
 * cb_shared, counted by its handles, and by the copies that refer to its image. */
#include "runtime/api/api.h"

#include "base/clock.h"
#include "base/fork.h"
#include "base/memory.h"
#include "runtime/api/checks.h"
#include "runtime/cuda/ranges.h"
#include "runtime/operator/values.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- life */

static void free_shared(struct cb_shared *shared) {
  if (shared->updater && !cb_device_enter(shared->session->device, NULL)) {
    cb_updater_free(shared->updater);
    cb_device_leave(shared->session->device);
  } else if (shared->updater) {
    cb_updater_forget(shared->updater);
  }
  if (shared->pairs && !cb_device_enter(shared->session->device, NULL)) {
    cb_pairs_free(shared->pairs);
    cb_device_leave(shared->session->device);
  } else {
    cb_pairs_forget(shared->pairs);
  }
  if (!shared->borrows_special) cb_image_release(&shared->special);
  cb_checks_free(shared->checks);
  if (!shared->origin) {
    cb_image_release(&shared->image);
    cb_free(shared->order.rows);
    cb_free(shared->order.columns);
  }
  cb_session_release(shared->session);
  cb_free(shared->kept.directory);
  pthread_mutex_destroy(&shared->specialising);
  pthread_mutex_destroy(&shared->texts);
  pthread_mutex_destroy(&shared->lock);
  cb_free(shared);
}

/* One handle, or copy, less; of a copy that goes with it the origin has one less, too. */
static void release_shared(struct cb_shared *shared) {
  while (shared && atomic_fetch_sub(&shared->handles, 1) == 1) {
    struct cb_shared *const origin = shared->origin;
    free_shared(shared);
    shared = origin;
  }
}

/* A handle on `shared`, which counts it already; `op` is taken over, and freed on failure. */
static enum cb_status new_handle(struct cbgen_operator **out, struct cb_shared *shared,
                                 struct cb_operator *op, struct cb_diag *diag) {
  struct cbgen_operator *handle = cb_calloc(1, sizeof *handle);
  *out = NULL;
  if (!handle) {
    cb_operator_free(op);
    return cb_fail_memory(diag, "an operator", sizeof *handle);
  }
  handle->shared = shared;
  handle->op = op;
  atomic_init(&handle->stream, CB_UNBOUND);
  pthread_mutex_init(&handle->lock, NULL);
  pthread_mutex_init(&handle->launching, NULL);
  *out = handle;
  return CB_OK;
}

static void note_load(struct cb_shared *shared, const struct cb_operator *op) {
  const struct cb_operator_info *loaded = cb_operator_info(op);
  shared->info.load_seconds += loaded->load_seconds;
  shared->info.upload_seconds += loaded->upload_seconds;
}

const char cb_device_scalars[] = "device alpha; device beta; inout y;"
                                 "y = beta == 0 ? alpha * ax : fma(beta, y, alpha * ax);";

/* Also of an operator that was saved. */
static enum cb_status find_device_scalars(struct cb_shared *shared, struct cb_diag *diag) {
  struct cb_statements *own;
  struct cb_text texts[2] = {{0}, {0}};
  if (!shared->image.statements) return CB_OK;
  enum cb_status s = cb_statements_parse(&own, cb_device_scalars, "device_scalars", 1, diag);
  if (s) return s;
  cb_statements_print(&texts[0], own);
  cb_statements_print(&texts[1], shared->image.statements);
  char *const wanted = cb_text_detach(&texts[0]), *const found = cb_text_detach(&texts[1]);
  if (wanted && found) shared->device_scalars = !strcmp(wanted, found);
  else s = cb_fail_memory(diag, "an epilogue", 0);
  cb_free(wanted);
  cb_free(found);
  cb_free(own);
  return s;
}

static enum cb_status alloc_shared(struct cb_shared **out, struct cb_session *session, struct cb_diag *diag) {
  struct cb_shared *shared = *out = cb_calloc(1, sizeof *shared);
  if (!shared) return cb_fail_memory(diag, "an operator", sizeof *shared);
  atomic_init(&shared->handles, 1);
  pthread_mutex_init(&shared->lock, NULL);
  pthread_mutex_init(&shared->specialising, NULL);
  pthread_mutex_init(&shared->texts, NULL);
  shared->session = cb_session_hold(session);
  return CB_OK;
}

static enum cb_status new_shared(struct cb_shared **out, const struct cb_loading *loading,
                                 struct cb_diag *diag) {
  struct cb_shared *shared;
  const enum cb_status s = alloc_shared(out, loading->session, diag);
  if (s) {
    cb_image_release(loading->image);
    return s;
  }
  shared = *out;
  shared->image = *loading->image;
  shared->info = *loading->info;
  shared->measured = loading->info->measured_seconds; /* by tuning, or 0 */
  snprintf(shared->key, sizeof shared->key, "%016llx", (unsigned long long)shared->image.id);
  static const char *const tiers[] = {[CB_TIER_SPECIALISED] = "specialised", [CB_TIER_FAMILY] = "family"};
  for (int tier = 0; tier < 2; tier++)
    snprintf(shared->range[tier], sizeof *shared->range, "cbgen: product, %s %s", tiers[tier], shared->image.line);
  *loading->image = (struct cb_image){0};
  return CB_OK;
}

/* Values from the host go through a buffer that is only for this. */
static enum cb_status move_values(struct cb_updater *updater, const struct cb_device *device,
                                  const struct cb_loading *loading, size_t count, struct cb_diag *diag) {
  const size_t bytes = count * cb_type_size(loading->value_type);
  cb_device_ptr values = (cb_device_ptr)(uintptr_t)loading->values, buffer = 0;
  const enum cb_type stored = loading->packer->stored;
  const int may_lose = !cb_type_is_widest(stored) && (stored != loading->value_type || cb_updater_map(updater).lists);
  int lost = 0;
  enum cb_status s = CB_OK;
  if (!loading->on_device) {
    s = cb_device_alloc(device, &buffer, bytes, "values", diag);
    if (!s) s = cb_device_upload(device, buffer, loading->values, bytes, "values", diag);
    values = buffer;
  }
  if (!s) s = cb_updater_run(updater, loading->value_type, values, NULL, diag);
  if (!s) s = cb_device_wait(device, "packing values", diag);
  if (!s && may_lose) s = cb_updater_lost(updater, &lost, diag);
  cb_device_free(device, buffer);
  return lost ? cb_fail_range(stored, diag) : s;
}

/* With the device's context current. */
static enum cb_status add_values(struct cb_shared *shared, const struct cb_operator *op,
                                 const struct cb_loading *loading, struct cb_diag *diag) {
  struct cb_updater *updater = NULL;
  const double start = cb_seconds();
  enum cb_status s = cb_updater_create(&updater, loading->packer, op, &shared->image, diag);
  if (!s && loading->finish_verification) s = loading->finish_verification(loading->user, diag);
  if (!s && loading->values)
    s = move_values(updater, shared->session->device, loading, (size_t)shared->image.entries, diag);
  if (!s && loading->keep) {
    shared->updater = updater;
    shared->packer = loading->packer;
  } else {
    cb_updater_free(updater);
  }
  shared->info.upload_seconds += cb_seconds() - start;
  return s;
}

/* Arrays filled by kernels, from the matrix on the device. */
static enum cb_status fill_arrays(struct cb_device_packing *packing, const struct cb_loading *loading,
                                  enum cb_type matrix_type, struct cb_diag *diag) {
  const cb_device_ptr values = (cb_device_ptr)(uintptr_t)loading->values;
  int lost = 0;
  enum cb_status s = cb_device_packing_indices(packing, loading->pack, diag);
  if (!s) s = cb_device_packing_values(packing, values ? loading->value_type : CB_F64, values, NULL, diag);
  if (!s && cb_type_is_widest(matrix_type)) s = cb_device_wait(loading->session->device, "packing", diag);
  else if (!s) s = cb_device_packing_lost(packing, &lost, diag); /* behind the kernels, in the same stream */
  if (!s) cb_survey_empty(loading->pack->survey);
  return lost ? cb_fail_range(matrix_type, diag) : s;
}

/* With the device's context current. */
static enum cb_status pack_there(struct cb_shared *shared, const struct cb_operator *op,
                                 const struct cb_loading *loading, struct cb_diag *diag) {
  const struct cb_device *device = shared->session->device;
  struct cb_device_packing *packing = NULL;
  const double start = cb_seconds();
  enum cb_status s = cb_device_packing_create(&packing, loading->pack, cb_operator_arrays(op), diag);
  if (!s) s = fill_arrays(packing, loading, shared->image.matrix_type, diag);
  if (!s && loading->keep) s = cb_device_packing_prepare(packing, diag);
  if (!s && loading->keep)
    s = cb_updater_create_packing(&shared->updater, packing, device, shared->image.entries, diag);
  else if (!s)
    cb_device_packing_finish(packing);
  else
    cb_device_packing_free(packing);
  shared->info.pack_seconds += cb_seconds() - start;
  return s;
}

static enum cb_status fill_shared(struct cb_shared *shared, struct cb_operator **op,
                                  const struct cb_loading *loading, struct cb_diag *diag) {
  const struct cb_device *device = shared->session->device;
  enum cb_status s = cb_operator_load(op, device, &shared->image, 0, diag);
  if (s) return s;
  note_load(shared, *op);
  if (!loading->packer && loading->finish_verification) s = loading->finish_verification(loading->user, diag);
  if (!s && (loading->packer || loading->pack)) {
    s = cb_device_enter(device, diag);
    if (s) return s;
    s = loading->pack ? pack_there(shared, *op, loading, diag) : add_values(shared, *op, loading, diag);
    cb_device_leave(device);
  }
  return s ? s : cb_image_detach(&shared->image, diag);
}

enum cb_status cb_operator_make(struct cbgen_operator **out, const struct cb_loading *loading,
                                struct cb_diag *diag) {
  struct cb_shared *shared;
  struct cb_operator *op = NULL;
  *out = NULL;
  enum cb_status s = new_shared(&shared, loading, diag);
  if (s) return s;
  s = find_device_scalars(shared, diag);
  if (!s) s = fill_shared(shared, &op, loading, diag);
  if (!s)
    s = new_handle(out, shared, op, diag);
  else
    cb_operator_free(op);
  if (s) release_shared(shared);
  return s;
}

void cbgen_operator_free(cbgen_operator *op) {
  if (!op) return;
  cb_operator_free(op->op);
  release_shared(op->shared);
  pthread_mutex_destroy(&op->lock);
  pthread_mutex_destroy(&op->launching);
  cb_free(op);
}

/* ---- messages */

cbgen_status cb_operator_report(cbgen_operator *op, enum cb_status status, const struct cb_diag *diag) {
  if (status) {
    pthread_mutex_lock(&op->lock);
    op->diag = *diag;
    pthread_mutex_unlock(&op->lock);
  }
  return (cbgen_status)status;
}

const char *cbgen_operator_message(const cbgen_operator *op) {
  return op ? op->diag.message : "";
}

/* ---- clones */

cbgen_status cbgen_operator_clone(cbgen_operator *op, cbgen_operator **clone) {
  CB_STANDARD_NUMERICS;
  struct cb_operator *copy = NULL;
  struct cb_diag diag = {0};
  if (clone) *clone = NULL;
  if (!op) return CBGEN_ERROR_ARGUMENT;
  if (!clone)
    return cb_operator_report(op, cb_fail(&diag, CB_ERR_ARGUMENT, "no place for the clone was given"), &diag);
  enum cb_status s = cb_operator_clone(&copy, op->op, &diag);
  if (!s) {
    atomic_fetch_add(&op->shared->handles, 1);
    s = new_handle(clone, op->shared, copy, &diag);
    if (s) release_shared(op->shared);
  }
  return cb_operator_report(op, s, &diag);
}

/* ---- products */

/* A number for each stream. The default stream has two names. Each thread has a default stream of its own, for which
 * the address of a variable of that thread stands. */
static uintptr_t stream_identity(const void *stream) {
  enum { LEGACY = 1, PER_THREAD = 2 };
  static _Thread_local char thread;
  if ((uintptr_t)stream == LEGACY) return 0;
  return (uintptr_t)stream == PER_THREAD ? (uintptr_t)&thread : (uintptr_t)stream;
}

/* Scratch serves one stream: the first product's. */
static enum cb_status bind(cbgen_operator *op, const void *stream, struct cb_diag *diag) {
  const uintptr_t wanted = stream_identity(stream);
  uintptr_t bound = CB_UNBOUND;
  if (atomic_compare_exchange_strong(&op->stream, &bound, wanted) || bound == wanted) return CB_OK;
  return cb_fail(
      diag, CB_ERR_ARGUMENT,
      "this operator has scratch that serves another stream: clone the operator for this one, or unbind it "
      "once its products are done");
}

void cbgen_operator_unbind(cbgen_operator *op) {
  if (op) atomic_store(&op->stream, CB_UNBOUND);
}

static enum cb_status check_argument(const struct cb_operator_info *info, const struct cb_name *name,
                                     const cbgen_argument *argument, struct cb_diag *diag) {
  const enum cb_type standard = cb_name_is_vector(name) ? info->vector_type : info->sum_type;
  const enum cb_type type = name->type == CB_TYPE_COUNT ? standard : name->type;
  if (name->kind == CB_NAME_SCALAR) {
    if (!argument->pointer) return CB_OK;
    return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' is a scalar: its 'value' counts, and 'pointer' is NULL", name->name);
  }
  if (!argument->pointer) return cb_fail(diag, CB_ERR_ARGUMENT, "the 'pointer' of '%s' is NULL", name->name);
  if ((uintptr_t)argument->pointer % cb_type_size(type))
    return cb_fail(diag, CB_ERR_ARGUMENT, "the 'pointer' of '%s' is not aligned to its elements", name->name);
  return CB_OK;
}

static const cbgen_argument *find_argument(const cbgen_product *product, const char *name) {
  for (int i = 0; i < product->arguments_count; i++)
    if (product->arguments[i].name && !strcmp(product->arguments[i].name, name)) return &product->arguments[i];
  return NULL;
}

/* What the epilogue's names stand for: each is given, and nothing else. */
static enum cb_status take_arguments(struct cb_operands *operands, const struct cb_operator_info *info,
                                     const cbgen_product *product, struct cb_diag *diag) {
  const struct cb_statements *statements = info->statements;
  int wanted = 0;
  if (product->arguments_count < 0 || (product->arguments_count && !product->arguments))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'arguments' of the product is NULL, or their count negative");
  for (int i = 0; i < statements->names_count; i++) {
    const struct cb_name *name = &statements->names[i];
    if (!cb_name_is_given(name)) continue;
    const cbgen_argument *argument = find_argument(product, name->name);
    if (!argument) return cb_fail(diag, CB_ERR_ARGUMENT, "the product's arguments lack '%s'", name->name);
    const enum cb_status s = check_argument(info, name, argument, diag);
    if (s) return s;
    operands->pointers[i] = (cb_device_ptr)(uintptr_t)argument->pointer;
    operands->scalars[i] = argument->value;
    wanted++;
  }
  if (product->arguments_count == wanted) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "the product has %d arguments, and the epilogue %d names",
                 product->arguments_count, wanted);
}

/* alpha, beta and y for cb_device_scalars. From here on beta says that y is read. */
static enum cb_status take_device_scalars(struct cb_operands *operands, const struct cb_operator_info *info,
                                          cbgen_product *product, struct cb_diag *diag) {
  const struct cb_statements *statements = info->statements;
  const cb_device_ptr alpha = (cb_device_ptr)(uintptr_t)product->alpha_device,
                      beta = (cb_device_ptr)(uintptr_t)product->beta_device;
  if (!alpha || !beta)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "this operator was compiled with 'device_scalars': 'alpha_device' and 'beta_device' of the product "
                   "are not NULL");
  if ((alpha | beta) % cb_type_size(info->sum_type))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'alpha_device' or 'beta_device' is not aligned to the sums' type");
  if (product->arguments_count)
    return cb_fail(diag, CB_ERR_ARGUMENT, "the product has arguments, and the operator no epilogue of the caller's");
  operands->pointers[cb_statements_find(statements, "alpha")] = alpha;
  operands->pointers[cb_statements_find(statements, "beta")] = beta;
  operands->pointers[cb_statements_find(statements, "y")] =
      (cb_device_ptr)(uintptr_t)(product->z ? product->z : product->y);
  product->beta = 1;
  return CB_OK;
}

static enum cb_status check_heads(const struct cb_operator_info *info, const cbgen_product *product,
                                  struct cb_diag *diag) {
  if (product->heads != 0 && product->heads != 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'heads' of the product is %d; it is 0 or 1", product->heads);
  if (product->heads && info->matrix_type != CB_SPLIT)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "this operator's values are not split, so that they have no heads: set 'split' of the request");
  return CB_OK;
}

/* A product with an epilogue, or one without. */
static enum cb_status check_epilogue(struct cb_operands *operands, const struct cb_operator_info *info,
                                     const cbgen_product *product, struct cb_diag *diag) {
  if (product->alpha_device || product->beta_device)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "the product has 'alpha_device' or 'beta_device', and the operator was compiled without "
                   "'device_scalars'");
  if (info->statements && (product->alpha_imag != 0 || product->beta_imag != 0))
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "this operator's vectors are real: 'alpha_imag' and 'beta_imag' of the product are 0");
  if (!info->statements && product->arguments_count)
    return cb_fail(diag, CB_ERR_ARGUMENT, "the product has arguments, and the operator no epilogue");
  if (!info->statements) return CB_OK;
  if (product->alpha != 1 || product->beta != 0 || product->y || product->z)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "this operator has an epilogue: alpha must be 1, beta 0, and 'y' NULL, as is 'z'");
  return take_arguments(operands, info, product, diag);
}

static enum cb_status check_vectors(const struct cb_operator_info *info, const cbgen_product *product, int has_y,
                                    struct cb_diag *diag) {
  const int reads_y = product->beta != 0 || product->beta_imag != 0 || !product->z;
  if (info->rows && !product->y && reads_y && has_y) return cb_fail(diag, CB_ERR_ARGUMENT, "'y' of the product is NULL");
  if (info->cols && info->rows && !product->x)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'x' of the product is NULL");
  if (((uintptr_t)product->x | (uintptr_t)product->y | (uintptr_t)product->z) % cb_type_size(info->vector_type))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'x', 'y' or 'z' of the product is not aligned to its elements");
  return CB_OK;
}

/* From here on z is y. */
static enum cb_status take_z(const struct cb_device *device, const struct cb_operator_info *info,
                             cbgen_product *product, struct cb_diag *diag) {
  const struct cb_driver *driver = device->driver;
  const void *y = product->y;
  const size_t bytes = (size_t)info->rows * cb_type_size(info->vector_type);
  if (!product->z) return CB_OK;
  product->y = product->z;
  if ((product->beta == 0 && product->beta_imag == 0) || product->z == y || !bytes) return CB_OK;
  return cb_driver_check(driver,
                         driver->call.copy_on_device((cb_device_ptr)(uintptr_t)product->z, (cb_device_ptr)(uintptr_t)y,
                                                     bytes, product->stream),
                         diag, "copy 'y' of the product to 'z'");
}

static enum cb_status multiply(cbgen_operator *op, cbgen_product *product, struct cb_diag *diag) {
  const struct cb_operator_info *info = cb_operator_info(op->op);
  const struct cb_device *device = op->shared->session->device;
  const int device_scalars = op->shared->device_scalars, together =
      info->has_carry && info->launches > 1; /* what one launch leaves in scratch is the next one's */
  struct cb_operands operands;
  int entered = 0;
  enum cb_status s = cb_checks_outcome(op->shared->checks, diag);
  if (!s) s = check_heads(info, product, diag);
  if (!s && device_scalars && (product->alpha_imag != 0 || product->beta_imag != 0))
    s = cb_fail(diag, CB_ERR_ARGUMENT, "'alpha_imag' and 'beta_imag' of the product are 0: both numbers are in device memory");
  if (!s)
    s = device_scalars ? take_device_scalars(&operands, info, product, diag)
                       : check_epilogue(&operands, info, product, diag);
  if (!s) s = check_vectors(info, product, !info->statements || device_scalars, diag);
  if (!s && info->has_carry) s = bind(op, product->stream, diag);
  if (!s) s = cb_device_enter_once(device, &entered, diag);
  if (s) return s;
  if (together) pthread_mutex_lock(&op->launching);
  s = take_z(device, info, product, diag);
  if (!s && info->statements)
    s = cb_operator_apply(op->op, (cb_device_ptr)(uintptr_t)product->x, &operands, product->stream, diag);
  else if (!s && product->heads)
    s = cb_operator_multiply_heads(op->op, product->alpha, (cb_device_ptr)(uintptr_t)product->x, product->beta,
                                   (cb_device_ptr)(uintptr_t)product->y, product->stream, diag);
  else if (!s)
    s = cb_checks_multiply(op->shared->checks, op->op, product, diag);
  if (together) pthread_mutex_unlock(&op->launching);
  if (entered) cb_device_leave(device);
  return s;
}

/* Here and in cbgen_update_values the thread's rounding mode is left as it is, which saves time: nothing that they call
 * depends on it. */
cbgen_status cbgen_multiply(cbgen_operator *op, const cbgen_product *product) {
  struct cb_diag diag;
  cbgen_product taken;
  if (!op) return CBGEN_ERROR_ARGUMENT;
  CB_RANGE(op->shared->range[cb_operator_tier(op->op)]);
  diag.message[0] = 0;
  const size_t least = offsetof(cbgen_product, arguments);
  enum cb_status s = cb_take_struct(&taken, sizeof taken, least, product, "cbgen_product", &diag);
  if (!s) s = multiply(op, &taken, &diag);
  return cb_operator_report(op, s, &diag);
}

/* ---- several vectors */

/* Elements between rows or columns, at least `least`; 0 stands for that. */
static enum cb_status take_leading(int64_t *leading, int64_t least, const char *name, struct cb_diag *diag) {
  if (!*leading) *leading = least;
  if (*leading >= least) return CB_OK;
  return cb_fail(diag, CB_ERR_ARGUMENT, "'%s' of the products is %lld; it is 0 or at least %lld", name,
                 (long long)*leading, (long long)least);
}

/* Bytes from the first element to behind the last one, in *bytes. */
static enum cb_status measure_dense(uint64_t *bytes, const cbgen_products *products, int64_t length, int64_t leading,
                                    size_t size, const char *name, struct cb_diag *diag) {
  const int by_row = products->order == CBGEN_BY_ROW;
  const uint64_t lines = (uint64_t)(by_row ? length : products->vectors);
  const uint64_t last = (uint64_t)(by_row ? products->vectors : length);
  *bytes = 0;
  if (!length) return CB_OK;
  if ((uint64_t)leading > (UINT64_MAX >> 1) / size / (lines + 1))
    return cb_fail(diag, CB_ERR_LIMIT, "%s of the products does not fit into the address space", name);
  *bytes = ((lines - 1) * (uint64_t)leading + last) * size;
  return CB_OK;
}

static enum cb_status check_dense(const struct cb_operator_info *info, const cbgen_products *products,
                                  struct cb_diag *diag) {
  const size_t size = cb_type_size(info->vector_type);
  const uintptr_t x = (uintptr_t)products->x, y = (uintptr_t)products->y;
  uint64_t x_bytes, y_bytes;
  enum cb_status s = measure_dense(&x_bytes, products, info->cols, products->ldx, size, "X", diag);
  if (!s) s = measure_dense(&y_bytes, products, info->rows, products->ldy, size, "Y", diag);
  if (s) return s;
  if (info->rows && (!y || (info->cols && !x)))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'x' or 'y' of the products is NULL");
  if ((x | y) % size) return cb_fail(diag, CB_ERR_ARGUMENT, "'x' or 'y' of the products is not aligned to its elements");
  if (x_bytes > UINTPTR_MAX - x || y_bytes > UINTPTR_MAX - y)
    return cb_fail(diag, CB_ERR_LIMIT, "X or Y of the products does not fit into the address space");
  if (x_bytes && y_bytes && x < y + y_bytes && y < x + x_bytes)
    return cb_fail(diag, CB_ERR_ARGUMENT, "X and Y of the products overlap");
  return CB_OK;
}

static enum cb_status take_products(cbgen_products *products, const struct cb_operator_info *info,
                                    struct cb_diag *diag) {
  if (products->vectors < 1)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'vectors' of the products is %d; it is 1 or more", products->vectors);
  if (products->order != CBGEN_BY_ROW && products->order != CBGEN_BY_COLUMN)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'order' is %d; it is one of cbgen_order", (int)products->order);
  const int by_row = products->order == CBGEN_BY_ROW;
  enum cb_status s = take_leading(&products->ldx, by_row ? products->vectors : info->cols, "ldx", diag);
  if (!s) s = take_leading(&products->ldy, by_row ? products->vectors : info->rows, "ldy", diag);
  return s ? s : check_dense(info, products, diag);
}

static struct cb_dense dense_of(const void *at, int64_t leading, cbgen_order order) {
  const cb_device_ptr place = (cb_device_ptr)(uintptr_t)at;
  return order == CBGEN_BY_ROW ? (struct cb_dense){place, leading, 1} : (struct cb_dense){place, 1, leading};
}

static enum cb_status multiply_many(cbgen_operator *op, cbgen_products *products, struct cb_diag *diag) {
  const struct cb_operator_info *info = cb_operator_info(op->op);
  int entered = 0;
  enum cb_status s = cb_checks_outcome(op->shared->checks, diag);
  if (!s) s = take_products(products, info, diag);
  if (!s && info->has_scratch) s = bind(op, products->stream, diag);
  if (!s) s = cb_device_enter_once(op->shared->session->device, &entered, diag);
  if (s) return s;
  if (info->has_scratch) pthread_mutex_lock(&op->launching); /* what one launch leaves in scratch is the next one's */
  const struct cb_scalars by = {products->alpha, products->beta, products->alpha_imag, products->beta_imag};
  s = cb_operator_multiply_many(op->op, products->vectors, &by, dense_of(products->x, products->ldx, products->order),
                                dense_of(products->y, products->ldy, products->order), products->stream, diag);
  if (info->has_scratch) pthread_mutex_unlock(&op->launching);
  if (entered) cb_device_leave(op->shared->session->device);
  return s;
}

cbgen_status cbgen_multiply_many(cbgen_operator *op, const cbgen_products *products) {
  struct cb_diag diag;
  cbgen_products taken;
  if (!op) return CBGEN_ERROR_ARGUMENT;
  CB_RANGE(op->shared->range[cb_operator_tier(op->op)]);
  diag.message[0] = 0;
  enum cb_status s = cb_take_struct(&taken, sizeof taken, offsetof(cbgen_products, alpha_imag), products, "cbgen_products", &diag);
  if (!s) s = multiply_many(op, &taken, &diag);
  return cb_operator_report(op, s, &diag);
}

/* ---- new values */

static enum cb_status check_update(const struct cb_shared *shared, const cbgen_update *update,
                                   struct cb_diag *diag) {
  if (!shared->updater)
    return cb_fail(
        diag, CB_ERR_ARGUMENT,
        shared->image.values == CBGEN_VALUES_FIXED
            ? "this operator's values are fixed: they shaped its kernel; compile it with mutable values"
            : "this operator's values cannot be renewed: compile it with mutable values");
  if ((int)update->value_type < 0 || update->value_type > CBGEN_C128)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'value_type' is %d; it is one of cbgen_type",
                   (int)update->value_type);
  if (cb_type_is_complex((enum cb_type)update->value_type) && !cb_type_is_complex(shared->image.matrix_type))
    return cb_fail(diag, CB_ERR_ARGUMENT, "the update has complex values, and this operator's are real");
  if (update->memory != CBGEN_HOST && update->memory != CBGEN_DEVICE)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'memory' is %d; it is one of cbgen_memory", (int)update->memory);
  if (shared->image.entries && !update->values)
    return cb_fail(diag, CB_ERR_ARGUMENT, "'values' of the update is NULL");
  if ((uintptr_t)update->values % cb_type_size((enum cb_type)update->value_type))
    return cb_fail(diag, CB_ERR_ARGUMENT, "'values' of the update is not aligned for its type");
  return CB_OK;
}

/* Values from the host lie in the updater's buffer then. */
static enum cb_status compare_pairs(const struct cb_shared *shared, const cbgen_update *update, struct cb_diag *diag) {
  const cb_device_ptr values = update->memory == CBGEN_DEVICE ? (cb_device_ptr)(uintptr_t)update->values
                                                              : cb_updater_staging(shared->updater);
  return cb_pairs_compare(shared->pairs, (enum cb_type)update->value_type, values, update->stream, diag);
}

static enum cb_status renew(const struct cb_shared *shared, const cbgen_update *update,
                            struct cb_diag *diag) {
  const struct cb_device *device = shared->session->device;
  const enum cb_type type = (enum cb_type)update->value_type;
  int entered = 0;
  enum cb_status s = cb_checks_outcome(shared->checks, diag);
  if (!s) s = check_update(shared, update, diag);
  if (!s && !shared->image.entries) return CB_OK;
  if (!s) s = cb_device_enter_once(device, &entered, diag);
  if (s) return s;
  s = update->memory == CBGEN_DEVICE
          ? cb_updater_run(shared->updater, type, (cb_device_ptr)(uintptr_t)update->values, update->stream,
                           diag)
          : cb_updater_run_from_host(shared->updater, type, update->values, update->stream, diag);
  if (!s) s = compare_pairs(shared, update, diag);
  if (!s) s = cb_checks_renew(shared->checks, update, diag);
  if (entered) cb_device_leave(device);
  return s;
}

cbgen_status cbgen_update_values(cbgen_operator *op, const cbgen_update *update) {
  struct cb_diag diag;
  cbgen_update taken;
  if (!op) return CBGEN_ERROR_ARGUMENT;
  CB_RANGE("cbgen: new values");
  diag.message[0] = 0;
  enum cb_status s = cb_take_struct(&taken, sizeof taken, sizeof taken, update, "cbgen_update", &diag);
  const int threads = cb_threads_begin(0);
  if (!s) s = renew(op->shared, &taken, &diag);
  cb_threads_end(threads);
  return cb_operator_report(op, s, &diag);
}

/* ---- copies: with the origin's `specialising` held, so that its tier stays */

static enum cb_status check_copy(const struct cb_shared *origin, struct cb_diag *diag) {
  if (!origin->updater)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "a copy gets values of its own, and this operator's cannot be renewed: compile it with mutable values");
  if (cb_checks_record(origin->checks))
    return cb_fail(diag, CB_ERR_UNSUPPORTED,
                   "the kernels of this operator have checks (CBGEN_CHECK=bounds), which serve it alone: compile the other "
                   "matrix, too");
  return CB_OK;
}

static enum cb_status take_from(struct cb_shared *copy, struct cb_shared *origin, struct cb_diag *diag) {
  copy->origin = origin;
  atomic_fetch_add(&origin->handles, 1);
  copy->image = origin->image;
  copy->image.plan = NULL;
  copy->order = origin->order;
  copy->device_scalars = origin->device_scalars;
  copy->special = origin->special;
  copy->borrows_special = origin->special.cubin != NULL;
  copy->packer = origin->packer;
  pthread_mutex_lock(&origin->lock);
  copy->measured = origin->measured;
  pthread_mutex_unlock(&origin->lock);
  memcpy(copy->key, origin->key, sizeof copy->key);
  memcpy(copy->range, origin->range, sizeof copy->range);
  if (!origin->kept.directory) return CB_OK;
  struct cb_text directory = {0};
  cb_text_add_string(&directory, origin->kept.directory);
  copy->kept = (struct cb_kept_at){cb_text_detach(&directory), origin->kept.limit, origin->kept.key};
  return copy->kept.directory ? CB_OK : cb_fail_memory(diag, "an operator", 0);
}

static enum cb_status copy_updater(struct cb_shared *copy, const struct cb_operator *op, struct cb_diag *diag) {
  const struct cb_device *device = copy->session->device;
  enum cb_status s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_updater_copy(&copy->updater, copy->origin->updater, op, &copy->image, diag);
  if (!s) s = cb_device_wait(device, "copying", diag);
  cb_device_leave(device);
  return s;
}

static enum cb_status make_copy(cbgen_operator **out, const cbgen_operator *op, struct cb_diag *diag) {
  struct cb_shared *copy = NULL;
  struct cb_operator *made = NULL;
  enum cb_status s = check_copy(op->shared, diag);
  if (!s) s = alloc_shared(&copy, op->shared->session, diag);
  if (s) return s;
  s = take_from(copy, op->shared, diag);
  if (!s) s = cb_operator_copy(&made, op->op, cb_shared_image(op->shared), diag);
  if (!s) s = copy_updater(copy, made, diag);
  if (!s) s = new_handle(out, copy, made, diag);
  else cb_operator_free(made);
  if (s) release_shared(copy);
  return s;
}

/* Whether all that were renewed have a split form. */
static enum cb_status check_split(const struct cb_shared *shared, struct CUstream_st *stream, struct cb_diag *diag) {
  int lost = 0;
  if (shared->image.matrix_type != CB_SPLIT || !shared->updater) return CB_OK;
  const enum cb_status s = cb_updater_take_lost(shared->updater, stream, &lost, diag);
  return !s && lost ? cb_fail_range(CB_SPLIT, diag) : s;
}

/* As renew, but from the host through memory that is only for this. */
static enum cb_status put_values(const struct cb_shared *copy, const cbgen_update *update, struct cb_diag *diag) {
  const struct cb_device *device = copy->session->device;
  const size_t bytes = (size_t)copy->image.entries * cb_type_size((enum cb_type)update->value_type);
  cb_device_ptr buffer = 0;
  enum cb_status s = check_update(copy, update, diag);
  if (s || update->memory == CBGEN_DEVICE || !bytes) return s ? s : renew(copy, update, diag);
  s = cb_device_enter(device, diag);
  if (s) return s;
  s = cb_device_alloc(device, &buffer, bytes, "values", diag);
  if (!s) s = cb_device_upload(device, buffer, update->values, bytes, "values", diag);
  if (!s) s = cb_updater_run(copy->updater, (enum cb_type)update->value_type, buffer, NULL, diag);
  if (!s) s = cb_device_wait(device, "packing values", diag);
  if (!s) s = check_split(copy, NULL, diag);
  cb_device_free(device, buffer);
  cb_device_leave(device);
  return s;
}

static enum cb_status copy_with_values(cbgen_operator **out, cbgen_operator *op, const cbgen_update *values,
                                       struct cb_diag *diag) {
  const double start = cb_seconds();
  struct cb_memory *memory = op->shared->session->device->memory;
  cb_memory_mark(memory);
  pthread_mutex_lock(&op->shared->specialising);
  enum cb_status s = make_copy(out, op, diag);
  pthread_mutex_unlock(&op->shared->specialising);
  if (!s && values) s = put_values((*out)->shared, values, diag);
  if (s) {
    cbgen_operator_free(*out);
    *out = NULL;
    return s;
  }
  cbgen_info *info = &(*out)->shared->info;
  note_load((*out)->shared, (*out)->op);
  info->total_seconds = cb_seconds() - start;
  info->peak_bytes = cb_memory_peak(memory);
  return CB_OK;
}

cbgen_status cbgen_operator_copy(cbgen_operator *op, const cbgen_update *values, cbgen_operator **copy) {
  CB_STANDARD_NUMERICS;
  CB_RANGE("cbgen: copy an operator");
  cbgen_update taken;
  struct cb_diag diag = {0};
  enum cb_status s = CB_OK;
  if (copy) *copy = NULL;
  if (!op) return CBGEN_ERROR_ARGUMENT;
  if (!copy) return cb_operator_report(op, cb_fail(&diag, CB_ERR_ARGUMENT, "no place for the copy was given"), &diag);
  if (values) s = cb_take_struct(&taken, sizeof taken, sizeof taken, values, "cbgen_update", &diag);
  const int threads = cb_threads_begin(0);
  if (!s) s = copy_with_values(copy, op, values ? &taken : NULL, &diag);
  cb_threads_end(threads);
  return cb_operator_report(op, s, &diag);
}

/* ---- what values must be */

static enum cb_status check_values(const struct cb_shared *shared, struct CUstream_st *stream, struct cb_diag *diag) {
  int entered = 0;
  if (!shared->pairs && shared->image.matrix_type != CB_SPLIT)
    return cb_fail(diag, CB_ERR_ARGUMENT,
                   "nothing is checked: the operator was not compiled with the option 'check-symmetry' at 'on'");
  enum cb_status s = cb_device_enter_once(shared->session->device, &entered, diag);
  if (s) return s;
  s = check_split(shared, stream, diag);
  if (!s && shared->pairs) s = cb_pairs_outcome(shared->pairs, stream, diag);
  if (entered) cb_device_leave(shared->session->device);
  return s;
}

cbgen_status cbgen_operator_check(cbgen_operator *op, void *stream) {
  struct cb_diag diag;
  if (!op) return CBGEN_ERROR_ARGUMENT;
  diag.message[0] = 0;
  return cb_operator_report(op, check_values(op->shared, stream, &diag), &diag);
}
