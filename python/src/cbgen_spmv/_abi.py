# SPDX-License-Identifier: Apache-2.0
"""include/cbgen.h in ctypes: structs, numbers and prototypes, in the header's order and names.

Nothing here opens a library. tests/test_python_abi.py compiles a C program against the header and compares every
size, offset, number and prototype with this file, so that the two cannot drift apart.
"""
from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p
from enum import IntEnum
from typing import Any, Dict, Tuple


class Status(IntEnum):
    """What a call of the library ended with; `cbgen.Error.status`."""

    OK = 0
    ARGUMENT = 1
    FORMAT = 2
    UNSUPPORTED = 3
    LIMIT = 4
    MEMORY = 5
    IO = 6
    MISSING = 7
    COMPILE = 8
    DEVICE = 9
    WRONG = 10
    INTERNAL = 11


class Type(IntEnum):
    F64 = 0
    F32 = 1
    F16 = 2
    BF16 = 3
    C64 = 4
    C128 = 5


class Format(IntEnum):
    CSR = 0
    CSC = 1
    COO = 2
    BSR = 3


class Memory(IntEnum):
    HOST = 0
    DEVICE = 1


class Values(IntEnum):
    STORED = 0
    MUTABLE = 1
    FIXED = 2


class Reorder(IntEnum):
    NONE = 0
    SYMMETRIC = 1
    UNSYMMETRIC = 2


class Tier(IntEnum):
    SPECIALISED = 0
    FAMILY = 1


class Specialise(IntEnum):
    AUTO = 0
    NOW = 1
    NEVER = 2


class Symmetry(IntEnum):
    SYMMETRY_OPTION = 0
    SYMMETRIC = 1
    SKEW_SYMMETRIC = 2
    UNSYMMETRIC = 3
    HERMITIAN = 4


class CacheResult(IntEnum):
    OFF = 0
    MISS = 1
    HIT = 2


class Csr(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("rows", c_int64),
        ("cols", c_int64),
        ("nnz", c_int64),
        ("row_ptr", c_void_p),
        ("col_idx", c_void_p),
        ("values", c_void_p),
        ("row_ptr_bits", c_int),
        ("col_idx_bits", c_int),
        ("index_base", c_int),
        ("value_type", c_int),
        ("memory", c_int),
        ("stream", c_void_p),
        ("name", c_char_p),
    ]


class Matrix(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("format", c_int),
        ("rows", c_int64),
        ("cols", c_int64),
        ("nnz", c_int64),
        ("pointers", c_void_p),
        ("indices", c_void_p),
        ("values", c_void_p),
        ("pointer_bits", c_int),
        ("index_bits", c_int),
        ("index_base", c_int),
        ("value_type", c_int),
        ("memory", c_int),
        ("stream", c_void_p),
        ("name", c_char_p),
        ("block_rows", c_int),
        ("block_cols", c_int),
        ("blocks_by_column", c_int),
    ]


class Request(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("expected_products", c_int64),
        ("values", c_int),
        ("transpose", c_int),
        ("specialise", c_int),
        ("epilogue", c_char_p),
        ("vectors", c_int),
        ("reorder", c_int),
        ("symmetric", c_int),
        ("device_scalars", c_int),
        ("split", c_int),
        ("conjugate", c_int),
        ("solver", c_char_p),
    ]


class Argument(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("pointer", c_void_p),
        ("value", c_double),
    ]


class Product(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("alpha", c_double),
        ("beta", c_double),
        ("x", c_void_p),
        ("y", c_void_p),
        ("stream", c_void_p),
        ("arguments", POINTER(Argument)),
        ("arguments_count", c_int),
        ("z", c_void_p),
        ("alpha_device", c_void_p),
        ("beta_device", c_void_p),
        ("heads", c_int),
        ("alpha_imag", c_double),
        ("beta_imag", c_double),
    ]


class Order(IntEnum):
    BY_ROW = 0
    BY_COLUMN = 1


class Products(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("vectors", c_int),
        ("order", c_int),
        ("ldx", c_int64),
        ("ldy", c_int64),
        ("alpha", c_double),
        ("beta", c_double),
        ("x", c_void_p),
        ("y", c_void_p),
        ("stream", c_void_p),
        ("alpha_imag", c_double),
        ("beta_imag", c_double),
    ]


class Update(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("values", c_void_p),
        ("value_type", c_int),
        ("memory", c_int),
        ("stream", c_void_p),
    ]


class Outcome(Structure):
    _fields_ = [
        ("reason", c_int),
        ("iterations", c_int),
        ("residual", c_double),
        ("true_residual", c_double),
        ("value", c_double),
    ]


PRECONDITION = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)
PROGRESS = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, c_double, c_void_p)


class SolverOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("relative_tolerance", c_double),
        ("absolute_tolerance", c_double),
        ("max_iterations", c_int),
        ("diagonal", c_void_p),
        ("outcome", POINTER(Outcome)),
        ("history", POINTER(c_double)),
        ("thread_blocks", c_int),
        ("program_form", c_char_p),
        ("restart", c_int),
        ("weight", c_double),
        ("damping", c_double),
        ("lowest", c_double),
        ("highest", c_double),
        ("blocks", c_void_p),
        ("block_size", c_int),
        ("precondition", PRECONDITION),
        ("precondition_user", c_void_p),
        ("progress", PROGRESS),
        ("progress_user", c_void_p),
    ]


class BatchOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("systems", c_int64),
        ("relative_tolerance", c_double),
        ("absolute_tolerance", c_double),
        ("max_iterations", c_int),
        ("diagonals", c_void_p),
        ("outcomes", POINTER(Outcome)),
        ("program_form", c_char_p),
    ]


class LpResult(Structure):
    _fields_ = [
        ("reason", c_int),
        ("iterations", c_int),
        ("primal_residual", c_double),
        ("dual_residual", c_double),
        ("primal_value", c_double),
        ("dual_value", c_double),
    ]


class LpOptions(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("relative_tolerance", c_double),
        ("absolute_tolerance", c_double),
        ("max_iterations", c_int),
        ("norm", c_double),
        ("weight", c_double),
        ("row_scales", c_void_p),
        ("column_scales", c_void_p),
        ("result", POINTER(LpResult)),
        ("certificate_tolerance", c_double),
        ("matrix", POINTER(Csr)),
    ]


class LpProblem(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("cost", c_void_p),
        ("lower", c_void_p),
        ("upper", c_void_p),
        ("row_lower", c_void_p),
        ("row_upper", c_void_p),
    ]


class Reason(IntEnum):
    NONE = 0
    CONVERGED = 1
    ITERATIONS = 2
    BREAKDOWN = 3
    NOT_A_NUMBER = 4
    STOPPED = 5
    PRIMAL_INFEASIBLE = 6
    DUAL_INFEASIBLE = 7


class Info(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("rows", c_int64),
        ("cols", c_int64),
        ("nnz", c_int64),
        ("matrix_type", c_int),
        ("vector_type", c_int),
        ("sum_type", c_int),
        ("values", c_int),
        ("launches", c_int),
        ("has_scratch", c_int),
        ("registers", c_int),
        ("spilled_bytes", c_int),
        ("stored_bytes", c_int64),
        ("device_bytes", c_int64),
        ("bytes_per_nonzero", c_double),
        ("predicted_seconds", c_double),
        ("measured_seconds", c_double),
        ("csr_seconds", c_double),
        ("break_even", c_double),
        ("cache", c_int),
        ("hash_seconds", c_double),
        ("lookup_seconds", c_double),
        ("analysis_seconds", c_double),
        ("pack_seconds", c_double),
        ("generate_seconds", c_double),
        ("compile_seconds", c_double),
        ("tune_seconds", c_double),
        ("store_seconds", c_double),
        ("load_seconds", c_double),
        ("upload_seconds", c_double),
        ("total_seconds", c_double),
        ("entries", c_int64),
        ("tier", c_int),
        ("peak_bytes", c_int64),
        ("vectors", c_int),
        ("split", c_int),
    ]


LOG = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
ALLOCATE = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_size_t, c_void_p)
RELEASE = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_size_t, c_void_p)


class Allocator(Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("user", c_void_p),
        ("stream", c_void_p),
        ("allocate", ALLOCATE),
        ("release", RELEASE),
    ]


STATUS = c_int
HANDLE = c_void_p  # cbgen_context *, cbgen_operator *, cbgen_kernel *

# name: (result, arguments)
PROTOTYPES: Dict[str, Tuple[Any, Tuple[Any, ...]]] = {
    "cbgen_version": (c_char_p, ()),
    "cbgen_status_name": (c_char_p, (STATUS,)),
    "cbgen_context_create": (STATUS, (POINTER(HANDLE),)),
    "cbgen_context_destroy": (None, (HANDLE,)),
    "cbgen_trim": (None, ()),
    "cbgen_set": (STATUS, (HANDLE, c_char_p, c_char_p)),
    "cbgen_message": (c_char_p, (HANDLE,)),
    "cbgen_set_log": (STATUS, (HANDLE, LOG, c_void_p)),
    "cbgen_set_allocator": (STATUS, (HANDLE, POINTER(Allocator))),
    "cbgen_compile": (STATUS, (HANDLE, POINTER(Csr), POINTER(Request), POINTER(HANDLE))),
    "cbgen_compile_matrix": (STATUS, (HANDLE, POINTER(Matrix), POINTER(Request), POINTER(HANDLE))),
    "cbgen_operator_clone": (STATUS, (HANDLE, POINTER(HANDLE))),
    "cbgen_operator_copy": (STATUS, (HANDLE, POINTER(Update), POINTER(HANDLE))),
    "cbgen_operator_specialise": (STATUS, (HANDLE,)),
    "cbgen_operator_free": (None, (HANDLE,)),
    "cbgen_multiply": (STATUS, (HANDLE, POINTER(Product))),
    "cbgen_operator_unbind": (None, (HANDLE,)),
    "cbgen_multiply_many": (STATUS, (HANDLE, POINTER(Products))),
    "cbgen_residual": (STATUS, (HANDLE, c_void_p, c_void_p, c_void_p, c_void_p)),
    "cbgen_diagonal": (STATUS, (HANDLE, POINTER(Csr), c_void_p)),
    "cbgen_block_diagonal": (STATUS, (HANDLE, POINTER(Csr), c_int, c_void_p)),
    "cbgen_update_values": (STATUS, (HANDLE, POINTER(Update))),
    "cbgen_operator_check": (STATUS, (HANDLE, c_void_p)),
    "cbgen_operator_message": (c_char_p, (HANDLE,)),
    "cbgen_operator_info": (STATUS, (HANDLE, POINTER(Info))),
    "cbgen_operator_permutation": (STATUS, (HANDLE, POINTER(c_int32), POINTER(c_int32))),
    "cbgen_operator_measure": (STATUS, (HANDLE, POINTER(c_double))),
    "cbgen_operator_source": (c_char_p, (HANDLE, POINTER(c_size_t))),
    "cbgen_operator_plan": (c_char_p, (HANDLE,)),
    "cbgen_operator_plan_json": (c_char_p, (HANDLE,)),
    "cbgen_operator_key": (c_char_p, (HANDLE,)),
    "cbgen_operator_save": (STATUS, (HANDLE, c_void_p, c_size_t, POINTER(c_size_t))),
    "cbgen_operator_load": (STATUS, (HANDLE, c_void_p, c_size_t, POINTER(HANDLE))),
    "cbgen_solver_create": (STATUS, (HANDLE, c_char_p, POINTER(SolverOptions), POINTER(HANDLE))),
    "cbgen_solver_clone": (STATUS, (HANDLE, POINTER(SolverOptions), POINTER(HANDLE))),
    "cbgen_solver_free": (None, (HANDLE,)),
    "cbgen_solve": (STATUS, (HANDLE, c_void_p, c_void_p, c_void_p)),
    "cbgen_solver_outcome": (STATUS, (HANDLE, POINTER(Outcome))),
    "cbgen_solver_form": (c_char_p, (HANDLE,)),
    "cbgen_solver_message": (c_char_p, (HANDLE,)),
    "cbgen_solver_source": (c_char_p, (HANDLE, POINTER(c_size_t))),
    "cbgen_batch_create": (STATUS, (HANDLE, POINTER(Csr), c_char_p, POINTER(BatchOptions), POINTER(HANDLE))),
    "cbgen_batch_free": (None, (HANDLE,)),
    "cbgen_solve_batch": (STATUS, (HANDLE, c_void_p, c_void_p, c_void_p, c_void_p)),
    "cbgen_batch_outcomes": (STATUS, (HANDLE, POINTER(Outcome))),
    "cbgen_batch_message": (c_char_p, (HANDLE,)),
    "cbgen_lp_create": (STATUS, (HANDLE, HANDLE, POINTER(LpOptions), POINTER(HANDLE))),
    "cbgen_lp_clone": (STATUS, (HANDLE, POINTER(LpOptions), POINTER(HANDLE))),
    "cbgen_lp_free": (None, (HANDLE,)),
    "cbgen_lp_solve": (STATUS, (HANDLE, POINTER(LpProblem), c_void_p, c_void_p, c_void_p)),
    "cbgen_lp_outcome": (STATUS, (HANDLE, POINTER(LpResult))),
    "cbgen_lp_form": (c_char_p, (HANDLE,)),
    "cbgen_lp_message": (c_char_p, (HANDLE,)),
    "cbgen_lp_scales": (STATUS, (HANDLE, POINTER(Csr), c_void_p, c_void_p)),
    "cbgen_generate": (STATUS, (HANDLE, POINTER(Csr), POINTER(HANDLE))),
    "cbgen_generate_matrix": (STATUS, (HANDLE, POINTER(Matrix), POINTER(HANDLE))),
    "cbgen_kernel_free": (None, (HANDLE,)),
    "cbgen_kernel_source": (c_char_p, (HANDLE, POINTER(c_size_t))),
    "cbgen_kernel_data": (c_void_p, (HANDLE, POINTER(c_size_t))),
    "cbgen_kernel_embedded": (c_int, (HANDLE,)),
    "cbgen_kernel_symbol": (c_char_p, (HANDLE,)),
    "cbgen_kernel_plan": (c_char_p, (HANDLE,)),
    "cbgen_kernel_plan_json": (c_char_p, (HANDLE,)),
    "cbgen_kernel_stored_bytes": (c_int64, (HANDLE,)),
}
