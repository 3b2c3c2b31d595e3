// SPDX-License-Identifier: Apache-2.0
/* A loaded kernel with its arrays on a GPU: what multiplies.
 *
 *   cb_operator_load       cubin and arrays to the device, functions found, attributes set: everything that a
 *                          product needs happens here, so the first product costs what the others cost
 *   cb_operator_multiply   one launch per launch of the plan; no allocation, no synchronisation
 *   cb_operator_clone      another handle on the same kernel and arrays with carry slots of its own
 *   cb_operator_copy       another matrix of the same pattern: the same kernel and indices, values of its own
 *
 * The operator keeps nothing of the image: it may be released once it is loaded. The kernel's parameters are
 * laid out as codegen/source.h documents.
 */
#ifndef CBGEN_RUNTIME_OPERATOR_OPERATOR_H
#define CBGEN_RUNTIME_OPERATOR_OPERATOR_H

#include "analysis/plan.h"
#include "base/status.h"
#include "runtime/cuda/driver.h"
#include "runtime/operator/image.h"

#include <stddef.h>
#include <stdint.h>

struct cb_operator;

/* Copies the image's arrays to the device in one allocation, or, `apart`, in one for each array, so that
 * compute-sanitizer sees reads beyond one. Makes the device's context current for the time of the call only.
 * The device must outlive the operator and its clones. CB_ERR_DEVICE, CB_ERR_MEMORY, CB_ERR_LIMIT (a grid or
 * shared memory that this GPU does not have); nothing is left on the device after a failure. */
enum cb_status cb_operator_load(struct cb_operator **op, const struct cb_device *device,
                                const struct cb_image *image, int apart, struct cb_diag *diag);

/* Shares everything but the carry slots. The parts go when the last handle is freed. Any thread. */
enum cb_status cb_operator_clone(struct cb_operator **clone, const struct cb_operator *op,
                                 struct cb_diag *diag);

/* An operator of its own that shares the kernels that multiply now, and all arrays but those with the image's value
 * slots, of which it gets copies once the device's work is done. `image`: of the kernels that multiply. What is shared
 * goes with the last operator that has it. Later kernels (cb_operator_take_over) are each operator's own. */
enum cb_status cb_operator_copy(struct cb_operator **copy, const struct cb_operator *op, const struct cb_image *image,
                                struct cb_diag *diag);

/* The caller sees to it that no product is still running. NULL is accepted. */
void cb_operator_free(struct cb_operator *op);

/* y = α A x + β y on `stream` (NULL: the default stream) of the device's context, which must be current. x
 * and y are vectors of the image's vector type, not overlapping. Its form fixes what α and β may be: y
 * = Ax takes (1, 0), y += Ax takes (1, 1), axpby takes any, or both of these in another semiring than plus-times; else
 * CB_ERR_ARGUMENT. */
struct cb_scalars { /* imaginary parts: 0, unless vectors are complex */
  double alpha, beta, alpha_imag, beta_imag;
};
enum cb_status cb_operator_multiply_by(const struct cb_operator *op, const struct cb_scalars *by, cb_device_ptr x,
                                       cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag);
enum cb_status cb_operator_multiply(const struct cb_operator *op, double alpha, cb_device_ptr x, double beta,
                                    cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag);

/* The same with heads of split values alone, each of which is its value rounded to a float. CB_ERR_ARGUMENT: the
 * operator's values are not split. */
enum cb_status cb_operator_multiply_heads(const struct cb_operator *op, double alpha, cb_device_ptr x, double beta,
                                          cb_device_ptr y, struct CUstream_st *stream, struct cb_diag *diag);

/* A dense matrix whose columns are vectors: entry i of vector v is `i * entry + v * vector` elements behind the first.
 */
struct cb_dense {
  cb_device_ptr at;
  int64_t entry, vector;
};

/* Y = α A X + β Y for `count` vectors: as many at once as the operator's kernels take (info.vectors), in turn.
 * Otherwise as cb_operator_multiply. CB_ERR_UNSUPPORTED: info.vectors is 1, and a vector's entries are no neighbours;
 * CB_ERR_LIMIT: rows lie 2^31 bytes apart. */
enum cb_status cb_operator_multiply_many(const struct cb_operator *op, int count, const struct cb_scalars *by,
                                         struct cb_dense x, struct cb_dense y, struct CUstream_st *stream,
                                         struct cb_diag *diag);

/* What an epilogue's names stand for in one product, by the place of the name in the operator's statements. */
struct cb_operands {
  cb_device_ptr pointers[CB_MOST_NAMES]; /* of vectors, device scalars and results */
  double scalars[CB_MOST_NAMES];         /* of scalars by value */
};

/* The product of an operator with an epilogue (cb_operator_info.statements): A x goes into its statements. Otherwise
 * as cb_operator_multiply. */
enum cb_status cb_operator_apply(const struct cb_operator *op, cb_device_ptr x, const struct cb_operands *operands,
                                 struct CUstream_st *stream, struct cb_diag *diag);

/* Where a clocked kernel (codegen/source.h) writes its clocks from now on: device memory of the caller's. Until then it
 * writes none. */
void cb_operator_set_clocks(struct cb_operator *op, cb_device_ptr clocks);

/* From now on the handle's products do not begin before what stands before them in the stream has ended: for bodies of
 * conditional nodes, where a driver does not let them overlap. */
void cb_operator_set_apart(struct cb_operator *op);

/* Loads the kernels of another image of the same plan, and has them multiply from the next product on, of this and all
 * handles. Products may run meanwhile on other threads; graphs keep the kernels that they have captured. Calls of this
 * are the caller's to order. On failure nothing changes. */
enum cb_status cb_operator_take_over(struct cb_operator *op, const struct cb_image *image, struct cb_diag *diag);

/* Of the kernels that multiply: their tier; per thread the most registers and bytes of local memory (spills). */
enum cb_tier cb_operator_tier(const struct cb_operator *op);
void cb_operator_registers(const struct cb_operator *op, int *registers, int *local_bytes);

/* The handle's own carry slots; 0 without any. */
void cb_operator_carry(const struct cb_operator *op, cb_device_ptr *sums, cb_device_ptr *counters);

/* Where array `number` of the image lies on the device. */
cb_device_ptr cb_operator_array(const struct cb_operator *op, int number);

/* Where all of them do, by their number. */
const cb_device_ptr *cb_operator_arrays(const struct cb_operator *op);

struct cb_operator_info {
  int64_t rows, cols, nnz;
  enum cb_type matrix_type, vector_type, sum_type;
  enum cb_form form;
  enum cb_semiring semiring;
  const struct cb_statements *statements; /* the epilogue; NULL: none. Lives as long as the operator */
  int launches;          /* of one product */
  int vectors;           /* that further kernels take at once; 1: there are none */
  int has_carry;         /* 1: serves one stream at a time; clone it for more */
  int has_scratch;       /* 1: so it does with several vectors, at least */
  int64_t scratch_bytes; /* a handle's own */
  int64_t stored_bytes;  /* arrays that a product reads */
  int64_t device_bytes;  /* allocated by this handle, what is shared included */
  double load_seconds;   /* module and functions */
  double upload_seconds; /* allocation and copy of the arrays */
};
const struct cb_operator_info *cb_operator_info(const struct cb_operator *op);

#endif
