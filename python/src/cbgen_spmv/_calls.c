// SPDX-License-Identifier: Apache-2.0
/* The short way of `A @ x` and `A.multiply(x, out)`: what ctypes and Python take 10 to 25 microseconds for, in one or
 * two.
 *
 * `Products` is the base class of Operator. Its methods read the arrays, look whether they fit, and call
 * cbgen_multiply. Whatever they do not know or do not like (another type of array, a wrong shape, NumPy, a closed
 * operator) they hand to the method of the same name with an underscore, which is Python's: it does it, or says what is
 * wrong. So errors and results are those of the package without this file, and a case that is missing here costs time
 * only.
 *
 * Read from the end: the module, the type, its methods, `launch`, then how arrays are read. Built against the limited
 * interface of Python 3.10, so that one file serves all later ones. It is not linked with libcbgen: Python hands over
 * the address of cbgen_multiply. */
#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cbgen.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- what is asked of arrays by name, as Python's strings */

#define NAMES(X) \
  X(shape) X(dtype) X(flags) X(c_contiguous) X(data) X(ptr) X(device_id) X(device) X(index) X(is_cuda) \
  X(requires_grad) X(is_contiguous) X(data_ptr) X(new_empty) X(_multiply) X(_matvec) X(_matmul) X(_rmatmul) \
  X(__cuda_array_interface__) X(typestr) X(strides) X(stream) X(mask)

struct names {
#define NAME(name) PyObject *name;
  NAMES(NAME)
#undef NAME
};
static struct names names;

static int make_names(void) {
#define NAME(name) \
  if (!(names.name = PyUnicode_InternFromString(#name))) return -1;
  NAMES(NAME)
#undef NAME
  return 0;
}

/* ---- DLPack's functions for C (dlpack.h 1.3), as classes offer them in __dlpack_c_exchange_api__ */

enum { DLPACK_CUDA = 2 };

struct dl_tensor {
  void *data;
  int32_t device_type, device_id, dimensions;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides; /* in elements */
  uint64_t byte_offset;
};

struct dl_exchange {
  uint32_t major, minor;
  struct dl_exchange *older;
  void *allocate, *from_object, *to_object; /* not used here */
  int (*read)(void *object, struct dl_tensor *tensor);
  int (*current_stream)(int32_t device_type, int32_t device_id, void **stream);
};

/* ---- types of arrays that Python has taught us: see `learn` */

enum kind { CUPY, TORCH, INTERFACE /* any class that has __cuda_array_interface__ */ };

struct reader {
  PyObject *type; /* exactly this one: subclasses may mean something else */
  enum kind kind;
  PyObject *dtypes;         /* {"float64": the library's object for it, …} */
  PyObject *current_stream; /* a function of a GPU's number: a handle, or an object whose `ptr` is one. Not INTERFACE */
  PyObject *empty;          /* of CuPy: a function of shape and dtype */
  const struct dl_exchange *exchange; /* of PyTorch; NULL: its attributes are read */
};

enum { MOST_READERS = 16 };
static struct reader readers[MOST_READERS];
static int reader_count;

static const struct reader *reader_of(PyObject *array) {
  PyObject *type = (PyObject *)Py_TYPE(array);
  for (int i = 0; i < reader_count; i++)
    if (readers[i].type == type) return &readers[i];
  return NULL;
}

/* ---- the operator as products need it */

typedef struct {
  PyObject_HEAD
  cbgen_status (*multiply)(cbgen_operator *, const cbgen_product *);
  cbgen_operator *handle; /* NULL: closed */
  int64_t rows, cols;
  int size, device; /* bytes of an element of x and y; the GPU's number */
  int code, bits;   /* of its type, as DLPack has them */
  PyObject *type_name;
} Call;

typedef struct {
  PyObject_HEAD
  Call *call;
  PyObject *handle_of_stream; /* of an operator with scratch: a function of a stream, gives a handle; else NULL */
  PyObject *check;            /* raises what a status stands for */
} Products;

struct vector {
  uint64_t address;
  int64_t length;
  bool column; /* its shape is (length, 1) */
  bool read_only;
  int device;
  bool knows_stream;
  uint64_t stream; /* the current one of its library; the default stream is 0 */
};

/* Functions below give one of these. LONG_WAY: no error is set, Python shall do it. */
enum outcome { FAILED = -1, LONG_WAY = 0, DONE = 1 };

/* What a look at an array raised is for Python to raise anew; Ctrl-C and the like are not. */
static enum outcome long_way(void) {
  if (!PyErr_Occurred()) return LONG_WAY;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return FAILED;
  PyErr_Clear();
  return LONG_WAY;
}

static uint64_t same_stream(uint64_t stream) {
  return stream == 1 ? 0 : stream; /* the default stream's second name */
}

/* ---- reading attributes */

/* Takes over a reference to a number. */
static enum outcome take_number(PyObject *number, int64_t *value) {
  if (!number) return long_way();
  *value = PyLong_Check(number) ? (int64_t)PyLong_AsUnsignedLongLongMask(number) : -1;
  bool whole = PyLong_Check(number);
  Py_DECREF(number);
  return whole ? DONE : LONG_WAY;
}

static enum outcome number_of(PyObject *object, PyObject *name, int64_t *value) {
  return take_number(PyObject_GetAttr(object, name), value);
}

/* DONE: the attribute is this very object. */
static enum outcome attribute_is(PyObject *object, PyObject *name, PyObject *wanted) {
  PyObject *found = PyObject_GetAttr(object, name);
  if (!found) return long_way();
  Py_DECREF(found);
  return found == wanted ? DONE : LONG_WAY;
}

static enum outcome take_shape(PyObject *shape, struct vector *v) {
  Py_ssize_t count = PyTuple_Check(shape) ? PyTuple_Size(shape) : 0;
  bool fits = count == 1 || count == 2;
  if (fits) v->length = PyLong_AsLongLong(PyTuple_GetItem(shape, 0));
  if (count == 2) fits = PyLong_AsLongLong(PyTuple_GetItem(shape, 1)) == 1;
  v->column = count == 2;
  return PyErr_Occurred() ? long_way() : fits ? DONE : LONG_WAY;
}

static enum outcome read_shape(PyObject *array, struct vector *v) {
  PyObject *shape = PyObject_GetAttr(array, names.shape);
  if (!shape) return long_way();
  enum outcome outcome = take_shape(shape, v);
  Py_DECREF(shape);
  return outcome;
}

static enum outcome has_dtype(const struct reader *reader, const Call *call, PyObject *array) {
  PyObject *wanted = PyDict_GetItem(reader->dtypes, call->type_name);
  return wanted ? attribute_is(array, names.dtype, wanted) : long_way();
}

static enum outcome read_current_stream(const struct reader *reader, struct vector *v) {
  PyObject *device = PyLong_FromLong(v->device);
  if (!device) return FAILED;
  PyObject *stream = PyObject_CallFunctionObjArgs(reader->current_stream, device, NULL);
  Py_DECREF(device);
  if (stream && !PyLong_Check(stream)) {
    PyObject *handle = PyObject_GetAttr(stream, names.ptr);
    Py_DECREF(stream);
    stream = handle;
  }
  int64_t handle;
  enum outcome outcome = take_number(stream, &handle);
  v->stream = same_stream((uint64_t)handle);
  return outcome;
}

static enum outcome read_cupy_memory(PyObject *array, struct vector *v) {
  PyObject *data = PyObject_GetAttr(array, names.data);
  if (!data) return long_way();
  int64_t address = 0, device = 0;
  enum outcome outcome = number_of(data, names.ptr, &address);
  if (outcome == DONE) outcome = number_of(data, names.device_id, &device);
  Py_DECREF(data);
  v->address = (uint64_t)address;
  v->device = (int)device;
  return outcome;
}

static enum outcome read_cupy(const struct reader *reader, const Call *call, PyObject *array, struct vector *v) {
  enum outcome outcome = has_dtype(reader, call, array);
  if (outcome != DONE) return outcome;
  PyObject *flags = PyObject_GetAttr(array, names.flags);
  if (!flags) return long_way();
  outcome = attribute_is(flags, names.c_contiguous, Py_True);
  Py_DECREF(flags);
  if (outcome == DONE) outcome = read_shape(array, v);
  return outcome == DONE ? read_cupy_memory(array, v) : outcome;
}

static enum outcome read_torch_attributes(const struct reader *reader, const Call *call, PyObject *array,
                                          struct vector *v) {
  int64_t address = 0, device = 0;
  enum outcome outcome = attribute_is(array, names.is_cuda, Py_True);
  if (outcome == DONE) outcome = has_dtype(reader, call, array);
  if (outcome == DONE) outcome = read_shape(array, v);
  if (outcome != DONE) return outcome;
  PyObject *dense = PyObject_CallMethodObjArgs(array, names.is_contiguous, NULL);
  if (!dense) return long_way();
  Py_DECREF(dense);
  if (dense != Py_True) return LONG_WAY;
  PyObject *where = PyObject_GetAttr(array, names.device);
  if (!where) return long_way();
  outcome = number_of(where, names.index, &device);
  Py_DECREF(where);
  if (outcome == DONE) outcome = take_number(PyObject_CallMethodObjArgs(array, names.data_ptr, NULL), &address);
  v->address = (uint64_t)address;
  v->device = (int)device;
  return outcome;
}

static enum outcome read_exchanged(const struct reader *reader, const Call *call, PyObject *array, struct vector *v) {
  struct dl_tensor t;
  if (reader->exchange->read(array, &t)) return long_way();
  bool vector = t.dimensions == 1 || (t.dimensions == 2 && t.shape[1] == 1);
  if (t.device_type != DLPACK_CUDA || !vector || t.lanes != 1) return LONG_WAY;
  if (t.code != call->code || t.bits != call->bits) return LONG_WAY;
  if (t.shape[0] > 1 && t.strides && t.strides[0] != 1) return LONG_WAY;
  v->address = (uint64_t)(uintptr_t)t.data + t.byte_offset;
  v->length = t.shape[0];
  v->column = t.dimensions == 2;
  v->device = t.device_id;
  return DONE;
}

/* ---- reading __cuda_array_interface__, which says all but the GPU */

static int (*pointer_attribute)(void *, int, uint64_t); /* cuPointerGetAttribute; NULL: the driver lacks it */

enum { DEVICE_ORDINAL = 9 }; /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */

/* The GPU that memory lies on; `unknown` where the driver does not say. */
static int device_of(uint64_t address, int unknown) {
  int ordinal = -1;
  if (!pointer_attribute || !address || pointer_attribute(&ordinal, DEVICE_ORDINAL, address)) return unknown;
  return ordinal < 0 ? unknown : ordinal;
}

/* The member of a dictionary, borrowed; NULL: it is missing, or None. */
static PyObject *member(PyObject *dictionary, PyObject *name) {
  PyObject *found = PyDict_GetItem(dictionary, name);
  return found == Py_None ? NULL : found;
}

static enum outcome take_interface(const struct reader *reader, const Call *call, PyObject *said, struct vector *v) {
  PyObject *wanted = PyDict_GetItem(reader->dtypes, call->type_name), *type = member(said, names.typestr);
  PyObject *shape = member(said, names.shape), *data = member(said, names.data), *stream = member(said, names.stream);
  if (!wanted || !type || PyUnicode_Compare(type, wanted) || !shape || member(said, names.mask)) return long_way();
  if (!data || !PyTuple_Check(data) || PyTuple_Size(data) != 2) return LONG_WAY;
  enum outcome outcome = take_shape(shape, v);
  PyObject *strides = member(said, names.strides);
  if (outcome == DONE && strides && v->length > 1) {
    if (!PyTuple_Check(strides) || PyTuple_Size(strides) < 1) return LONG_WAY;
    if (PyLong_AsLongLong(PyTuple_GetItem(strides, 0)) != call->size) return long_way();
  }
  v->address = PyLong_AsUnsignedLongLongMask(PyTuple_GetItem(data, 0));
  v->read_only = PyTuple_GetItem(data, 1) != Py_False;
  v->knows_stream = stream != NULL;
  if (stream) v->stream = same_stream(PyLong_AsUnsignedLongLongMask(stream));
  if (PyErr_Occurred()) return long_way();
  v->device = device_of(v->address, call->device);
  return outcome;
}

static enum outcome read_interface(const struct reader *reader, const Call *call, PyObject *array, struct vector *v) {
  PyObject *said = PyObject_GetAttr(array, names.__cuda_array_interface__);
  if (!said) return long_way();
  enum outcome outcome = PyDict_Check(said) ? take_interface(reader, call, said, v) : LONG_WAY;
  Py_DECREF(said);
  return outcome;
}

static enum outcome read_stream(const struct reader *reader, struct vector *v) {
  void *stream = NULL;
  if (reader->kind == INTERFACE) return DONE; /* it came with the rest */
  v->knows_stream = true;
  if (!reader->exchange) return read_current_stream(reader, v);
  if (reader->exchange->current_stream(DLPACK_CUDA, v->device, &stream)) return long_way();
  v->stream = same_stream((uint64_t)(uintptr_t)stream);
  return DONE;
}

/* Whether the array is a vector of `length` that the operator can take, and where it is. `detached`: whether it may
 * require gradients. */
static enum outcome read_vector(const Call *call, PyObject *array, int64_t length, bool detached, struct vector *v) {
  const struct reader *reader = reader_of(array);
  if (!reader) return LONG_WAY;
  enum outcome outcome = DONE;
  v->read_only = v->knows_stream = false;
  if (reader->kind == CUPY) outcome = read_cupy(reader, call, array, v);
  if (reader->kind == INTERFACE) outcome = read_interface(reader, call, array, v);
  if (reader->kind == TORCH && !detached) outcome = attribute_is(array, names.requires_grad, Py_False);
  if (reader->kind == TORCH && outcome == DONE)
    outcome = (reader->exchange ? read_exchanged : read_torch_attributes)(reader, call, array, v);
  if (outcome != DONE) return outcome;
  bool fits = v->length == length && v->device == call->device && v->address % (unsigned)call->size == 0;
  return fits ? DONE : LONG_WAY;
}

/* ---- products */

static bool overlap(const Call *call, const struct vector *x, const struct vector *y) {
  uint64_t x_end = x->address + (uint64_t)call->cols * (unsigned)call->size;
  uint64_t y_end = y->address + (uint64_t)call->rows * (unsigned)call->size;
  return x->address < y_end && y->address < x_end;
}

/* A new reference to an array for the result beside x, in the memory of x's library; NULL as `outcome` says. */
static PyObject *new_result(const Call *call, PyObject *x, const struct vector *v, enum outcome *outcome) {
  const struct reader *reader = reader_of(x);
  *outcome = LONG_WAY;
  if (reader->kind == INTERFACE) return NULL;
  PyObject *dtype = PyDict_GetItem(reader->dtypes, call->type_name); /* borrowed */
  const long long rows = call->rows;
  PyObject *shape = v->column                ? Py_BuildValue("(Li)", rows, 1)
                    : reader->kind == TORCH ? PyLong_FromLongLong(rows) /* which it reads faster than a tuple */
                                             : Py_BuildValue("(L)", rows);
  PyObject *made = NULL;
  if (shape && dtype)
    made = reader->kind == CUPY ? PyObject_CallFunctionObjArgs(reader->empty, shape, dtype, NULL)
                                : PyObject_CallMethodObjArgs(x, names.new_empty, shape, NULL);
  Py_XDECREF(shape);
  *outcome = made ? DONE : long_way();
  return made;
}

/* The handle whose products may run on the stream. An operator with scratch has one for each. */
static enum outcome handle_for(const Products *self, uint64_t stream, cbgen_operator **handle) {
  *handle = self->call->handle;
  if (!*handle) return LONG_WAY;
  if (!self->handle_of_stream) return DONE;
  PyObject *number = PyLong_FromUnsignedLongLong(stream);
  if (!number) return FAILED;
  PyObject *found = PyObject_CallFunctionObjArgs(self->handle_of_stream, number, NULL);
  Py_DECREF(number);
  if (!found) return FAILED;
  *handle = (cbgen_operator *)(uintptr_t)PyLong_AsUnsignedLongLongMask(found);
  Py_DECREF(found);
  return PyErr_Occurred() ? FAILED : DONE;
}

static enum outcome launch(const Products *self, const cbgen_product *product) {
  cbgen_operator *handle;
  enum outcome outcome = handle_for(self, (uint64_t)(uintptr_t)product->stream, &handle);
  if (outcome != DONE) return outcome;
  cbgen_status status;
  Py_BEGIN_ALLOW_THREADS /* a launch waits where the GPU's queue is full */
  status = self->call->multiply(handle, product);
  Py_END_ALLOW_THREADS
  if (!status) return DONE;
  PyObject *none = PyObject_CallFunction(self->check, "iK", (int)status, (unsigned long long)(uintptr_t)handle);
  Py_XDECREF(none);
  return none ? LONG_WAY : FAILED;
}

struct request {
  PyObject *x, *out; /* out NULL: a new array */
  double alpha, beta;
  bool given; /* whether the caller names a stream */
  uint64_t stream;
  bool detached; /* whether x may require gradients */
};

static enum outcome find_stream(struct request *r, struct vector *x, struct vector *y) {
  if (r->given) return DONE;
  const struct reader *of_x = reader_of(r->x), *of_y = reader_of(r->out);
  enum outcome outcome = read_stream(of_x, x);
  if (x->knows_stream) r->stream = x->stream;
  if (outcome != DONE || (of_x == of_y && of_x->kind != INTERFACE)) return outcome; /* they are on one GPU */
  outcome = read_stream(of_y, y);
  if (outcome != DONE || !y->knows_stream) return outcome;
  if (x->knows_stream && x->stream != y->stream) return LONG_WAY;
  r->stream = y->stream;
  return DONE;
}

/* The result, or NULL as `outcome` says. */
static PyObject *run(const Products *self, struct request *r, enum outcome *outcome) {
  const Call *call = self->call;
  struct vector x, y;
  PyObject *made = NULL;
  *outcome = LONG_WAY;
  if (!call || !call->handle || (!r->out && r->given)) return NULL;
  *outcome = read_vector(call, r->x, call->cols, r->detached, &x);
  if (*outcome == DONE && !r->out) r->out = made = new_result(call, r->x, &x, outcome);
  if (*outcome == DONE) *outcome = read_vector(call, r->out, call->rows, false, &y);
  if (*outcome == DONE && (y.read_only || overlap(call, &x, &y))) *outcome = LONG_WAY;
  if (*outcome == DONE) *outcome = find_stream(r, &x, &y);
  if (*outcome == DONE) {
    cbgen_product product = {.struct_size = sizeof product,
                             .alpha = r->alpha,
                             .beta = r->beta,
                             .x = (const void *)(uintptr_t)x.address,
                             .y = (void *)(uintptr_t)y.address,
                             .stream = (void *)(uintptr_t)r->stream};
    *outcome = launch(self, &product);
  }
  if (*outcome == DONE) {
    if (!made) Py_INCREF(r->out);
    return r->out;
  }
  Py_XDECREF(made);
  return NULL;
}

/* ---- the methods of Products */

static PyObject *stream_handle; /* Python's function of whatever callers give as a stream */

static enum outcome take_stream(PyObject *stream, struct request *r) {
  if (stream == Py_None) return DONE;
  int64_t handle;
  enum outcome outcome = take_number(PyObject_CallFunctionObjArgs(stream_handle, stream, NULL), &handle);
  r->given = true;
  r->stream = (uint64_t)handle;
  return outcome;
}

static enum outcome take_factor(PyObject *factor, double *value) {
  *value = PyFloat_AsDouble(factor);
  return PyErr_Occurred() ? long_way() : DONE;
}

static enum outcome take_named(PyObject *name, PyObject *value, struct request *r) {
  if (!PyUnicode_CompareWithASCIIString(name, "out")) {
    r->out = value;
    return DONE;
  }
  if (!PyUnicode_CompareWithASCIIString(name, "alpha")) return take_factor(value, &r->alpha);
  if (!PyUnicode_CompareWithASCIIString(name, "beta")) return take_factor(value, &r->beta);
  if (!PyUnicode_CompareWithASCIIString(name, "stream")) return take_stream(value, r);
  return LONG_WAY;
}

static enum outcome take_arguments(PyObject *const *arguments, Py_ssize_t count, PyObject *keywords,
                                   struct request *r) {
  if (count < 1 || count > 2) return LONG_WAY;
  Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  r->x = arguments[0];
  r->out = count == 2 ? arguments[1] : NULL;
  enum outcome outcome = DONE;
  for (Py_ssize_t i = 0; i < named && outcome == DONE; i++) {
    PyObject *name = PyTuple_GetItem(keywords, i);
    if (count == 2 && !PyUnicode_CompareWithASCIIString(name, "out")) return LONG_WAY; /* given twice */
    outcome = take_named(name, arguments[count + i], r);
  }
  if (r->out == Py_None) r->out = NULL;
  return outcome == DONE && !r->out && r->beta != 0 ? LONG_WAY : outcome;
}

/* The same call of the method in Python. */
static PyObject *python_multiply(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords) {
  Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  PyObject *method = PyObject_GetAttr(self, names._multiply), *result = NULL;
  PyObject *plain = PyTuple_New(count), *more = PyDict_New();
  bool fine = method && plain && more;
  for (Py_ssize_t i = 0; fine && i < count; i++) {
    Py_INCREF(arguments[i]);
    fine = !PyTuple_SetItem(plain, i, arguments[i]);
  }
  for (Py_ssize_t i = 0; fine && i < named; i++)
    fine = !PyDict_SetItem(more, PyTuple_GetItem(keywords, i), arguments[count + i]);
  if (fine) result = PyObject_Call(method, plain, more);
  Py_XDECREF(method);
  Py_XDECREF(plain);
  Py_XDECREF(more);
  return result;
}

static PyObject *products_multiply(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *keywords) {
  struct request r = {.alpha = 1};
  enum outcome outcome = take_arguments(arguments, count, keywords, &r);
  PyObject *result = NULL;
  if (outcome == DONE) result = run((Products *)self, &r, &outcome);
  return outcome == LONG_WAY ? python_multiply(self, arguments, count, keywords) : result;
}

/* A x as a new array, else what the method `name` of Python's gives. */
static PyObject *multiplied(PyObject *self, PyObject *x, PyObject *name) {
  struct request r = {.x = x, .alpha = 1};
  enum outcome outcome;
  PyObject *result = run((Products *)self, &r, &outcome);
  return outcome == LONG_WAY ? PyObject_CallMethodObjArgs(self, name, x, NULL) : result;
}

static PyObject *products_matvec(PyObject *self, PyObject *x) {
  return multiplied(self, x, names._matvec);
}

/* PyTorch's functions that say whether more is to happen than what a call does; NULL: unknown. */
static PyObject *listeners;

static enum outcome nobody_listens(void) {
  const Py_ssize_t count = listeners ? PyTuple_Size(listeners) : 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *said = PyObject_CallNoArgs(PyTuple_GetItem(listeners, i));
    if (!said) return long_way();
    const int listens = PyObject_IsTrue(said);
    Py_DECREF(said);
    if (listens) return listens < 0 ? long_way() : LONG_WAY;
  }
  return count ? DONE : LONG_WAY;
}

/* For cbgen_spmv.torch, which knows the long way. */
static PyObject *products_plain(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
  PyObject *result = NULL;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "_plain takes a tensor and whether it may require gradients");
  struct request r = {.x = arguments[0], .alpha = 1, .detached = arguments[1] == Py_True};
  const struct reader *reader = reader_of(r.x);
  enum outcome outcome = reader && reader->kind == TORCH ? nobody_listens() : LONG_WAY;
  if (outcome == DONE) result = run((Products *)self, &r, &outcome);
  if (outcome != LONG_WAY) return result;
  Py_RETURN_NONE;
}

static PyObject *products_type;

static PyObject *products_matmul(PyObject *left, PyObject *right) {
  if (PyObject_TypeCheck(left, (PyTypeObject *)products_type)) return multiplied(left, right, names._matmul);
  return PyObject_CallMethodObjArgs(right, names._rmatmul, left, NULL);
}

static PyObject *products_bind(PyObject *object, PyObject *arguments) {
  Products *self = (Products *)object;
  PyObject *call, *handle_of_stream, *check;
  if (!PyArg_ParseTuple(arguments, "OOO", &call, &handle_of_stream, &check)) return NULL;
  Py_INCREF(call);
  self->call = (Call *)call;
  if (handle_of_stream != Py_None) Py_INCREF(self->handle_of_stream = handle_of_stream);
  Py_INCREF(self->check = check);
  Py_RETURN_NONE;
}

static void free_instance(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
  Py_DECREF(type);
}

static void products_free(PyObject *object) {
  Products *self = (Products *)object;
  Py_CLEAR(self->call);
  Py_CLEAR(self->handle_of_stream);
  Py_CLEAR(self->check);
  free_instance(object);
}

static PyMethodDef products_methods[] = {
  {"multiply", (PyCFunction)(void (*)(void))products_multiply, METH_FASTCALL | METH_KEYWORDS,
   "multiply($self, x, out=None, *, alpha=1.0, beta=0.0, stream=None)\n--\n\n"
   "out = alpha A x + beta out, and gives `out` back. Without `out` a new array like x.\n\n"
   "x: shape (columns,) or (columns, 1), contiguous, of the operator's dtype; out likewise with rows. On a GPU\n"
   "nothing is copied, and with `out` nothing is allocated. `stream`: a CUDA stream (of CuPy, PyTorch, Numba, or its\n"
   "handle); the caller sees to it that x and out are ready there. None: the current stream of the arrays' library.\n"
   "TypeError, ValueError: the arrays do not fit, and what to do about it."},
  {"matvec", products_matvec, METH_O,
   "matvec($self, x)\n--\n\nA x as a new array. A vector that is not contiguous is copied first."},
  {"_plain", (PyCFunction)(void (*)(void))products_plain, METH_FASTCALL,
   "_plain(x, detached): A x as a new array, where x is a tensor to which nobody listens; None: by another way.\n"
   "detached: whether x may require gradients, which the result does not."},
  {"_bind", products_bind, METH_VARARGS, "_bind(call, handle_of_stream, check): what the products need, once."},
  {NULL, NULL, 0, NULL}};

static PyType_Slot products_slots[] = {
  {Py_tp_doc, "Products of an operator, by the short way where there is one."},
  {Py_tp_methods, products_methods},
  {Py_nb_matrix_multiply, products_matmul},
  {Py_tp_dealloc, products_free},
  {0, NULL}};
static PyType_Spec products_spec = {"cbgen_spmv._calls.Products", sizeof(Products), 0,
                                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, products_slots};

/* ---- Call: the handle that operators share with whoever frees it */

static int call_init(PyObject *object, PyObject *arguments, PyObject *keywords) {
  Call *self = (Call *)object;
  unsigned long long multiply, handle;
  long long rows, cols;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "KKLLiiiiU", &multiply, &handle, &rows, &cols, &self->size, &self->device,
                        &self->code, &self->bits, &self->type_name))
    return -1;
  Py_INCREF(self->type_name);
  uintptr_t address = (uintptr_t)multiply;
  memcpy(&self->multiply, &address, sizeof address);
  self->handle = (cbgen_operator *)(uintptr_t)handle;
  self->rows = rows;
  self->cols = cols;
  return 0;
}

static PyObject *call_close(PyObject *self, PyObject *nothing) {
  (void)nothing;
  ((Call *)self)->handle = NULL;
  Py_RETURN_NONE;
}

static void call_free(PyObject *object) {
  Py_CLEAR(((Call *)object)->type_name);
  free_instance(object);
}

static PyMethodDef call_methods[] = {{"close", call_close, METH_NOARGS, "The handle is about to be freed."},
                                     {NULL, NULL, 0, NULL}};
static PyType_Slot call_slots[] = {
  {Py_tp_doc, "Call(multiply, handle, rows, cols, size, device, code, bits, type_name): what products are made of."},
  {Py_tp_methods, call_methods},
  {Py_tp_init, call_init},
  {Py_tp_dealloc, call_free},
  {0, NULL}};
static PyType_Spec call_spec = {"cbgen_spmv._calls.Call", sizeof(Call), 0, Py_TPFLAGS_DEFAULT, call_slots};

/* ---- the module */

/* learn(type, kind, dtypes, current_stream, empty, exchange). True; False: there is no room for another type. */
static PyObject *learn(PyObject *module, PyObject *arguments) {
  struct reader r = {0};
  const char *kind;
  PyObject *exchange;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OsOOOO", &r.type, &kind, &r.dtypes, &r.current_stream, &r.empty, &exchange))
    return NULL;
  r.kind = !strcmp(kind, "cupy") ? CUPY : !strcmp(kind, "torch") ? TORCH : INTERFACE;
  for (int i = 0; i < reader_count; i++)
    if (readers[i].type == r.type) Py_RETURN_TRUE;
  if (reader_count == MOST_READERS) Py_RETURN_FALSE;
  if (PyCapsule_IsValid(exchange, "dlpack_exchange_api")) {
    r.exchange = PyCapsule_GetPointer(exchange, "dlpack_exchange_api");
    if (r.exchange->major != 1 || !r.exchange->read || !r.exchange->current_stream) r.exchange = NULL;
  }
  Py_INCREF(r.type);
  Py_INCREF(r.dtypes);
  Py_INCREF(r.current_stream);
  Py_INCREF(r.empty);
  readers[reader_count++] = r;
  Py_RETURN_TRUE;
}

/* forget(): the types learnt, for tests that bring others. */
static PyObject *forget(PyObject *module, PyObject *nothing) {
  (void)module;
  (void)nothing;
  while (reader_count) {
    struct reader *r = &readers[--reader_count];
    Py_CLEAR(r->type);
    Py_CLEAR(r->dtypes);
    Py_CLEAR(r->current_stream);
    Py_CLEAR(r->empty);
  }
  Py_RETURN_NONE;
}

static PyObject *set_stream_handle(PyObject *module, PyObject *function) {
  (void)module;
  PyObject *before = stream_handle;
  Py_INCREF(stream_handle = function);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

static PyObject *set_listeners(PyObject *module, PyObject *functions) {
  (void)module;
  if (!PyTuple_Check(functions)) return PyErr_Format(PyExc_TypeError, "set_listeners takes a tuple of functions");
  PyObject *before = listeners;
  Py_INCREF(listeners = functions);
  Py_XDECREF(before);
  Py_RETURN_NONE;
}

static PyObject *set_pointer_attribute(PyObject *module, PyObject *number) {
  (void)module;
  uintptr_t address = (uintptr_t)PyLong_AsUnsignedLongLongMask(number);
  memcpy(&pointer_attribute, &address, sizeof address);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
  {"learn", learn, METH_VARARGS,
   "learn(type, kind, dtypes, current_stream, empty, exchange): how to read a type's arrays."},
  {"forget", forget, METH_NOARGS, "forget(): the types learnt."},
  {"set_pointer_attribute", set_pointer_attribute, METH_O, "set_pointer_attribute(address): of cuPointerGetAttribute."},
  {"set_listeners", set_listeners, METH_O,
   "set_listeners(functions): of PyTorch, without arguments; while one says something true, `_plain` gives None."},
  {"set_stream_handle", set_stream_handle, METH_O, "set_stream_handle(function): of what is given as stream=."},
  {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_calls", "The short way of products.", -1, functions,
                                        NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__calls(void) {
  PyObject *module = PyModule_Create(&definition);
  if (!module || make_names()) return NULL;
  products_type = PyType_FromSpec(&products_spec);
  PyObject *call_type = PyType_FromSpec(&call_spec);
  if (!products_type || !call_type) return NULL;
  Py_INCREF(products_type); /* AddObject takes one */
  if (PyModule_AddObject(module, "Products", products_type)) return NULL;
  if (PyModule_AddObject(module, "Call", call_type)) return NULL;
  return module;
}
