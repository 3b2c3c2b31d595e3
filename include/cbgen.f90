! SPDX-License-Identifier: Apache-2.0
!> cbgen for Fortran 2008: cbgen.h by ISO_C_BINDING, to be compiled with the program that uses it (a .mod file is for
!> one compiler only; this source is for all).
!>
!>     use cbgen
!>     type(c_ptr) :: context, A
!>     type(cbgen_csr_t) :: matrix
!>     type(cbgen_product_t) :: product
!>     if (cbgen_context_create(context) /= CBGEN_OK) error stop 'out of memory'
!>     matrix%rows = n; matrix%cols = n; matrix%nnz = nnz
!>     matrix%index_base = 1                                ! as Fortran counts
!>     matrix%row_ptr = c_loc(row_ptr); matrix%col_idx = c_loc(col_idx); matrix%values = c_loc(values)
!>     if (cbgen_compile(context, matrix, A) /= CBGEN_OK) error stop cbgen_message(context)
!>     product%alpha = 1; product%x = device_x; product%y = device_y
!>     if (cbgen_multiply(A, product) /= CBGEN_OK) error stop cbgen_operator_message(A)
!>
!> What a function does, and its errors, stand at its namesake in cbgen.h. What differs here:
!>
!>   - Types end in _t, since Fortran does not tell cbgen_csr (the struct) from CBGEN_CSR (the number).
!>   - Functions give the status, an integer. Their last argument is optional where C takes NULL for it.
!>   - struct_size is set by this module. Components have C's defaults: zero.
!>   - Texts are Fortran strings, without a NUL at the end: blanks behind an option's name and value do not count.
!>   - x, y and arrays in device memory are addresses: type(c_ptr), as cudaMalloc gives them.
module cbgen
  use, intrinsic :: iso_c_binding
  implicit none
  private :: text_of, terminated

  ! cbgen_status
  integer(c_int), parameter :: CBGEN_OK = 0, CBGEN_ERROR_ARGUMENT = 1, CBGEN_ERROR_FORMAT = 2, &
    CBGEN_ERROR_UNSUPPORTED = 3, CBGEN_ERROR_LIMIT = 4, CBGEN_ERROR_MEMORY = 5, CBGEN_ERROR_IO = 6, &
    CBGEN_ERROR_MISSING = 7, CBGEN_ERROR_COMPILE = 8, CBGEN_ERROR_DEVICE = 9, CBGEN_ERROR_WRONG = 10, &
    CBGEN_ERROR_INTERNAL = 11
  ! cbgen_type
  integer(c_int), parameter :: CBGEN_F64 = 0, CBGEN_F32 = 1, CBGEN_F16 = 2, CBGEN_BF16 = 3, &
    CBGEN_C64 = 4, CBGEN_C128 = 5
  ! cbgen_memory
  integer(c_int), parameter :: CBGEN_HOST = 0, CBGEN_DEVICE = 1
  ! cbgen_format
  integer(c_int), parameter :: CBGEN_CSR = 0, CBGEN_CSC = 1, CBGEN_COO = 2, CBGEN_BSR = 3
  ! cbgen_values
  integer(c_int), parameter :: CBGEN_VALUES_STORED = 0, CBGEN_VALUES_MUTABLE = 1, CBGEN_VALUES_FIXED = 2
  ! cbgen_order
  integer(c_int), parameter :: CBGEN_BY_ROW = 0, CBGEN_BY_COLUMN = 1
  ! cbgen_tier
  integer(c_int), parameter :: CBGEN_TIER_SPECIALISED = 0, CBGEN_TIER_FAMILY = 1
  ! cbgen_specialise
  integer(c_int), parameter :: CBGEN_SPECIALISE_AUTO = 0, CBGEN_SPECIALISE_NOW = 1, CBGEN_SPECIALISE_NEVER = 2
  ! cbgen_reorder
  integer(c_int), parameter :: CBGEN_REORDER_NONE = 0, CBGEN_REORDER_SYMMETRIC = 1, CBGEN_REORDER_UNSYMMETRIC = 2
  ! cbgen_symmetry
  integer(c_int), parameter :: CBGEN_SYMMETRY_OPTION = 0, CBGEN_SYMMETRIC = 1, CBGEN_SKEW_SYMMETRIC = 2, &
    CBGEN_UNSYMMETRIC = 3, CBGEN_HERMITIAN = 4
  ! cbgen_cache_result
  integer(c_int), parameter :: CBGEN_CACHE_OFF = 0, CBGEN_CACHE_MISS = 1, CBGEN_CACHE_HIT = 2
  ! cbgen_reason
  integer(c_int), parameter :: CBGEN_REASON_NONE = 0, CBGEN_REASON_CONVERGED = 1, CBGEN_REASON_ITERATIONS = 2, &
    CBGEN_REASON_BREAKDOWN = 3, CBGEN_REASON_NOT_A_NUMBER = 4, CBGEN_REASON_STOPPED = 5, &
    CBGEN_REASON_PRIMAL_INFEASIBLE = 6, CBGEN_REASON_DUAL_INFEASIBLE = 7

  type, bind(c) :: cbgen_allocator_t
    integer(c_size_t) :: struct_size = 0
    type(c_ptr) :: user = c_null_ptr
    type(c_ptr) :: stream = c_null_ptr
    type(c_funptr) :: allocate = c_null_funptr !< c_funloc of a function with bind(c)
    type(c_funptr) :: release = c_null_funptr
  end type

  type, bind(c) :: cbgen_csr_t
    integer(c_size_t) :: struct_size = 0
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: nnz = 0
    type(c_ptr) :: row_ptr = c_null_ptr
    type(c_ptr) :: col_idx = c_null_ptr
    type(c_ptr) :: values = c_null_ptr
    integer(c_int) :: row_ptr_bits = 0
    integer(c_int) :: col_idx_bits = 0
    integer(c_int) :: index_base = 0
    integer(c_int) :: value_type = CBGEN_F64
    integer(c_int) :: memory = CBGEN_HOST
    type(c_ptr) :: stream = c_null_ptr
    type(c_ptr) :: name = c_null_ptr !< of characters that end with c_null_char
  end type

  type, bind(c) :: cbgen_matrix_t
    integer(c_size_t) :: struct_size = 0
    integer(c_int) :: format = CBGEN_CSR
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: nnz = 0
    type(c_ptr) :: pointers = c_null_ptr
    type(c_ptr) :: indices = c_null_ptr
    type(c_ptr) :: values = c_null_ptr
    integer(c_int) :: pointer_bits = 0
    integer(c_int) :: index_bits = 0
    integer(c_int) :: index_base = 0
    integer(c_int) :: value_type = CBGEN_F64
    integer(c_int) :: memory = CBGEN_HOST
    type(c_ptr) :: stream = c_null_ptr
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: block_rows = 0
    integer(c_int) :: block_cols = 0
    integer(c_int) :: blocks_by_column = 0
  end type

  type, bind(c) :: cbgen_request_t
    integer(c_size_t) :: struct_size = 0
    integer(c_int64_t) :: expected_products = 0
    integer(c_int) :: values = CBGEN_VALUES_STORED
    integer(c_int) :: transpose = 0
    integer(c_int) :: specialise = CBGEN_SPECIALISE_AUTO
    type(c_ptr) :: epilogue = c_null_ptr ! text that ends with a NUL
    integer(c_int) :: vectors = 0
    integer(c_int) :: reorder = CBGEN_REORDER_NONE
    integer(c_int) :: symmetric = CBGEN_SYMMETRY_OPTION
    integer(c_int) :: device_scalars = 0
    integer(c_int) :: split = 0
    integer(c_int) :: conjugate = 0
    type(c_ptr) :: solver = c_null_ptr ! text that ends with a NUL
  end type

  type, bind(c) :: cbgen_argument_t
    type(c_ptr) :: name = c_null_ptr ! text that ends with a NUL
    type(c_ptr) :: pointer = c_null_ptr
    real(c_double) :: value = 0
  end type

  type, bind(c) :: cbgen_product_t
    integer(c_size_t) :: struct_size = 0
    real(c_double) :: alpha = 0
    real(c_double) :: beta = 0
    type(c_ptr) :: x = c_null_ptr
    type(c_ptr) :: y = c_null_ptr
    type(c_ptr) :: stream = c_null_ptr
    type(c_ptr) :: arguments = c_null_ptr ! of cbgen_argument_t
    integer(c_int) :: arguments_count = 0
    type(c_ptr) :: z = c_null_ptr
    type(c_ptr) :: alpha_device = c_null_ptr
    type(c_ptr) :: beta_device = c_null_ptr
    integer(c_int) :: heads = 0
    real(c_double) :: alpha_imag = 0
    real(c_double) :: beta_imag = 0
  end type

  type, bind(c) :: cbgen_products_t
    integer(c_size_t) :: struct_size = 0
    integer(c_int) :: vectors = 0
    integer(c_int) :: order = CBGEN_BY_ROW
    integer(c_int64_t) :: ldx = 0
    integer(c_int64_t) :: ldy = 0
    real(c_double) :: alpha = 0
    real(c_double) :: beta = 0
    type(c_ptr) :: x = c_null_ptr
    type(c_ptr) :: y = c_null_ptr
    type(c_ptr) :: stream = c_null_ptr
    real(c_double) :: alpha_imag = 0
    real(c_double) :: beta_imag = 0
  end type

  type, bind(c) :: cbgen_update_t
    integer(c_size_t) :: struct_size = 0
    type(c_ptr) :: values = c_null_ptr
    integer(c_int) :: value_type = CBGEN_F64
    integer(c_int) :: memory = CBGEN_HOST
    type(c_ptr) :: stream = c_null_ptr
  end type

  type, bind(c) :: cbgen_info_t
    integer(c_size_t) :: struct_size = 0
    integer(c_int64_t) :: rows = 0
    integer(c_int64_t) :: cols = 0
    integer(c_int64_t) :: nnz = 0
    integer(c_int) :: matrix_type = CBGEN_F64
    integer(c_int) :: vector_type = CBGEN_F64
    integer(c_int) :: sum_type = CBGEN_F64
    integer(c_int) :: values = CBGEN_VALUES_STORED
    integer(c_int) :: launches = 0
    integer(c_int) :: has_scratch = 0
    integer(c_int) :: registers = 0
    integer(c_int) :: spilled_bytes = 0
    integer(c_int64_t) :: stored_bytes = 0
    integer(c_int64_t) :: device_bytes = 0
    real(c_double) :: bytes_per_nonzero = 0
    real(c_double) :: predicted_seconds = 0
    real(c_double) :: measured_seconds = 0
    real(c_double) :: csr_seconds = 0
    real(c_double) :: break_even = 0
    integer(c_int) :: cache = CBGEN_CACHE_OFF
    real(c_double) :: hash_seconds = 0
    real(c_double) :: lookup_seconds = 0
    real(c_double) :: analysis_seconds = 0
    real(c_double) :: pack_seconds = 0
    real(c_double) :: generate_seconds = 0
    real(c_double) :: compile_seconds = 0
    real(c_double) :: tune_seconds = 0
    real(c_double) :: store_seconds = 0
    real(c_double) :: load_seconds = 0
    real(c_double) :: upload_seconds = 0
    real(c_double) :: total_seconds = 0
    integer(c_int64_t) :: entries = 0
    integer(c_int) :: tier = CBGEN_TIER_SPECIALISED
    integer(c_int64_t) :: peak_bytes = 0
    integer(c_int) :: vectors = 0
    integer(c_int) :: split = 0
  end type

  type, bind(c) :: cbgen_lp_result_t
    integer(c_int) :: reason = CBGEN_REASON_NONE
    integer(c_int) :: iterations = 0
    real(c_double) :: primal_residual = 0
    real(c_double) :: dual_residual = 0
    real(c_double) :: primal_value = 0
    real(c_double) :: dual_value = 0
  end type

  type, bind(c) :: cbgen_lp_options_t
    integer(c_size_t) :: struct_size = 0
    real(c_double) :: relative_tolerance = 0
    real(c_double) :: absolute_tolerance = 0
    integer(c_int) :: max_iterations = 0
    real(c_double) :: norm = 0
    real(c_double) :: weight = 0
    type(c_ptr) :: row_scales = c_null_ptr
    type(c_ptr) :: column_scales = c_null_ptr
    type(c_ptr) :: result = c_null_ptr ! of a cbgen_lp_result_t in device memory
    real(c_double) :: certificate_tolerance = 0
    type(c_ptr) :: matrix = c_null_ptr ! a cbgen_csr_t in host memory
  end type

  type, bind(c) :: cbgen_lp_problem_t
    integer(c_size_t) :: struct_size = 0
    type(c_ptr) :: cost = c_null_ptr
    type(c_ptr) :: lower = c_null_ptr
    type(c_ptr) :: upper = c_null_ptr
    type(c_ptr) :: row_lower = c_null_ptr
    type(c_ptr) :: row_upper = c_null_ptr
  end type

  ! ---- as they are in C

  interface
    !> On success `context` is the caller's (cbgen_context_destroy).
    function cbgen_context_create(context) bind(c, name='cbgen_context_create') result(status)
      import :: c_ptr, c_int
      type(c_ptr), intent(out) :: context
      integer(c_int) :: status
    end function

    subroutine cbgen_context_destroy(context) bind(c, name='cbgen_context_destroy')
      import :: c_ptr
      type(c_ptr), value :: context
    end subroutine

    subroutine cbgen_trim() bind(c, name='cbgen_trim')
    end subroutine

    !> `log` is c_funloc of a subroutine (user, line) with bind(c): two type(c_ptr), value. c_null_funptr: no log.
    function cbgen_set_log(context, log, user) bind(c, name='cbgen_set_log') result(status)
      import :: c_ptr, c_funptr, c_int
      type(c_ptr), value :: context, user
      type(c_funptr), value :: log
      integer(c_int) :: status
    end function

    function cbgen_operator_clone(op, clone) bind(c, name='cbgen_operator_clone') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: op
      type(c_ptr), intent(out) :: clone
      integer(c_int) :: status
    end function

    !> `values` is c_loc of a cbgen_update_t that has its struct_size and the target attribute, or c_null_ptr.
    function cbgen_operator_copy(op, values, copy) bind(c, name='cbgen_operator_copy') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: op, values
      type(c_ptr), intent(out) :: copy
      integer(c_int) :: status
    end function

    function cbgen_operator_specialise(op) bind(c, name='cbgen_operator_specialise') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: op
      integer(c_int) :: status
    end function

    function cbgen_operator_permutation(op, rows, columns) bind(c, name='cbgen_operator_permutation') result(status)
      import :: c_ptr, c_int, c_int32_t
      type(c_ptr), value :: op
      integer(c_int32_t), intent(out) :: rows(*), columns(*) !< numbers from 0
      integer(c_int) :: status
    end function

    function cbgen_operator_check(op, stream) bind(c, name='cbgen_operator_check') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: op, stream
      integer(c_int) :: status
    end function

    subroutine cbgen_operator_free(op) bind(c, name='cbgen_operator_free')
      import :: c_ptr
      type(c_ptr), value :: op
    end subroutine

    subroutine cbgen_operator_unbind(op) bind(c, name='cbgen_operator_unbind')
      import :: c_ptr
      type(c_ptr), value :: op
    end subroutine

    function cbgen_operator_measure(op, seconds) bind(c, name='cbgen_operator_measure') result(status)
      import :: c_ptr, c_int, c_double
      type(c_ptr), value :: op
      real(c_double), intent(out) :: seconds
      integer(c_int) :: status
    end function

    !> With `bytes` c_null_ptr, only the length is told.
    function cbgen_operator_save(op, bytes, capacity, length) bind(c, name='cbgen_operator_save') result(status)
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), value :: op, bytes
      integer(c_size_t), value :: capacity
      integer(c_size_t), intent(out) :: length
      integer(c_int) :: status
    end function

    function cbgen_operator_load(context, bytes, length, op) bind(c, name='cbgen_operator_load') result(status)
      import :: c_ptr, c_int, c_size_t
      type(c_ptr), value :: context, bytes
      integer(c_size_t), value :: length
      type(c_ptr), intent(out) :: op
      integer(c_int) :: status
    end function

    subroutine cbgen_lp_free(lp) bind(c, name='cbgen_lp_free')
      import :: c_ptr
      type(c_ptr), value :: lp
    end subroutine

    function cbgen_lp_outcome(lp, outcome) bind(c, name='cbgen_lp_outcome') result(status)
      import :: c_ptr, c_int, cbgen_lp_result_t
      type(c_ptr), value :: lp
      type(cbgen_lp_result_t), intent(out) :: outcome
      integer(c_int) :: status
    end function

    subroutine cbgen_kernel_free(kernel) bind(c, name='cbgen_kernel_free')
      import :: c_ptr
      type(c_ptr), value :: kernel
    end subroutine

    function cbgen_kernel_data(kernel, length) bind(c, name='cbgen_kernel_data') result(bytes)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: kernel
      integer(c_size_t), intent(out) :: length
      type(c_ptr) :: bytes
    end function

    function cbgen_kernel_embedded(kernel) bind(c, name='cbgen_kernel_embedded') result(is_embedded)
      import :: c_ptr, c_int
      type(c_ptr), value :: kernel
      integer(c_int) :: is_embedded
    end function

    function cbgen_kernel_stored_bytes(kernel) bind(c, name='cbgen_kernel_stored_bytes') result(bytes)
      import :: c_ptr, c_int64_t
      type(c_ptr), value :: kernel
      integer(c_int64_t) :: bytes
    end function
  end interface

  ! ---- behind the functions below

  interface
    function c_set(context, name, value) bind(c, name='cbgen_set') result(status)
      import :: c_ptr, c_int, c_char
      type(c_ptr), value :: context
      character(kind=c_char), intent(in) :: name(*), value(*)
      integer(c_int) :: status
    end function

    function c_set_allocator(context, allocator) bind(c, name='cbgen_set_allocator') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: context, allocator
      integer(c_int) :: status
    end function

    function c_compile(context, matrix, request, op) bind(c, name='cbgen_compile') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: context, matrix, request
      type(c_ptr), intent(out) :: op
      integer(c_int) :: status
    end function

    function c_compile_matrix(context, matrix, request, op) bind(c, name='cbgen_compile_matrix') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: context, matrix, request
      type(c_ptr), intent(out) :: op
      integer(c_int) :: status
    end function

    function c_multiply_many(op, products) bind(c, name='cbgen_multiply_many') result(status)
      import :: c_ptr, c_int, cbgen_products_t
      type(c_ptr), value :: op
      type(cbgen_products_t), intent(in) :: products
      integer(c_int) :: status
    end function

    function c_multiply(op, product) bind(c, name='cbgen_multiply') result(status)
      import :: c_ptr, c_int, cbgen_product_t
      type(c_ptr), value :: op
      type(cbgen_product_t), intent(in) :: product
      integer(c_int) :: status
    end function

    function c_update_values(op, update) bind(c, name='cbgen_update_values') result(status)
      import :: c_ptr, c_int, cbgen_update_t
      type(c_ptr), value :: op
      type(cbgen_update_t), intent(in) :: update
      integer(c_int) :: status
    end function

    function c_operator_info(op, info) bind(c, name='cbgen_operator_info') result(status)
      import :: c_ptr, c_int, cbgen_info_t
      type(c_ptr), value :: op
      type(cbgen_info_t), intent(inout) :: info
      integer(c_int) :: status
    end function

    function c_generate(context, matrix, kernel) bind(c, name='cbgen_generate') result(status)
      import :: c_ptr, c_int, cbgen_csr_t
      type(c_ptr), value :: context
      type(cbgen_csr_t), intent(in) :: matrix
      type(c_ptr), intent(out) :: kernel
      integer(c_int) :: status
    end function

    function c_generate_matrix(context, matrix, kernel) bind(c, name='cbgen_generate_matrix') result(status)
      import :: c_ptr, c_int, cbgen_matrix_t
      type(c_ptr), value :: context
      type(cbgen_matrix_t), intent(in) :: matrix
      type(c_ptr), intent(out) :: kernel
      integer(c_int) :: status
    end function

    function c_version() bind(c, name='cbgen_version') result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_status_name(status) bind(c, name='cbgen_status_name') result(text)
      import :: c_ptr, c_int
      integer(c_int), value :: status
      type(c_ptr) :: text
    end function

    function c_message(context) bind(c, name='cbgen_message') result(text)
      import :: c_ptr
      type(c_ptr), value :: context
      type(c_ptr) :: text
    end function

    function c_operator_message(op) bind(c, name='cbgen_operator_message') result(text)
      import :: c_ptr
      type(c_ptr), value :: op
      type(c_ptr) :: text
    end function

    function c_operator_source(op, length) bind(c, name='cbgen_operator_source') result(text)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: op
      integer(c_size_t), intent(out) :: length
      type(c_ptr) :: text
    end function

    function c_lp_create(a, transposed, options, lp) bind(c, name='cbgen_lp_create') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: a, transposed, options
      type(c_ptr), intent(out) :: lp
      integer(c_int) :: status
    end function

    function c_lp_clone(lp, options, clone) bind(c, name='cbgen_lp_clone') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: lp, options
      type(c_ptr), intent(out) :: clone
      integer(c_int) :: status
    end function

    function c_lp_solve(lp, problem, x, y, stream) bind(c, name='cbgen_lp_solve') result(status)
      import :: c_ptr, c_int, cbgen_lp_problem_t
      type(c_ptr), value :: lp, x, y, stream
      type(cbgen_lp_problem_t), intent(in) :: problem
      integer(c_int) :: status
    end function

    function c_lp_scales(context, matrix, row_scales, column_scales) bind(c, name='cbgen_lp_scales') result(status)
      import :: c_ptr, c_int, cbgen_csr_t
      type(c_ptr), value :: context, row_scales, column_scales
      type(cbgen_csr_t), intent(in) :: matrix
      integer(c_int) :: status
    end function

    function c_lp_form(lp) bind(c, name='cbgen_lp_form') result(text)
      import :: c_ptr
      type(c_ptr), value :: lp
      type(c_ptr) :: text
    end function

    function c_lp_message(lp) bind(c, name='cbgen_lp_message') result(text)
      import :: c_ptr
      type(c_ptr), value :: lp
      type(c_ptr) :: text
    end function

    function c_operator_plan(op) bind(c, name='cbgen_operator_plan') result(text)
      import :: c_ptr
      type(c_ptr), value :: op
      type(c_ptr) :: text
    end function

    function c_operator_plan_json(op) bind(c, name='cbgen_operator_plan_json') result(text)
      import :: c_ptr
      type(c_ptr), value :: op
      type(c_ptr) :: text
    end function

    function c_operator_key(op) bind(c, name='cbgen_operator_key') result(text)
      import :: c_ptr
      type(c_ptr), value :: op
      type(c_ptr) :: text
    end function

    function c_kernel_source(kernel, length) bind(c, name='cbgen_kernel_source') result(text)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: kernel
      integer(c_size_t), intent(out) :: length
      type(c_ptr) :: text
    end function

    function c_kernel_symbol(kernel) bind(c, name='cbgen_kernel_symbol') result(text)
      import :: c_ptr
      type(c_ptr), value :: kernel
      type(c_ptr) :: text
    end function

    function c_kernel_plan(kernel) bind(c, name='cbgen_kernel_plan') result(text)
      import :: c_ptr
      type(c_ptr), value :: kernel
      type(c_ptr) :: text
    end function

    function c_kernel_plan_json(kernel) bind(c, name='cbgen_kernel_plan_json') result(text)
      import :: c_ptr
      type(c_ptr), value :: kernel
      type(c_ptr) :: text
    end function

    function c_strlen(text) bind(c, name='strlen') result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface
  private :: c_lp_create, c_lp_clone, c_lp_solve, c_lp_scales, c_lp_form, c_lp_message
  private :: c_set, c_set_allocator, c_compile, c_compile_matrix, c_multiply, c_multiply_many, &
    c_update_values, c_operator_info, c_generate, &
    c_generate_matrix, c_version, c_status_name, c_message, c_operator_message, c_operator_source, c_operator_plan, &
    c_operator_plan_json, c_operator_key, c_kernel_source, c_kernel_symbol, c_kernel_plan, c_kernel_plan_json, c_strlen

contains

  ! ---- contexts

  function cbgen_set(context, name, value) result(status)
    type(c_ptr), intent(in) :: context
    character(*), intent(in) :: name, value
    integer(c_int) :: status
    status = c_set(context, terminated(name), terminated(value))
  end function

  !> Without `allocator`: memory is the driver's again.
  function cbgen_set_allocator(context, allocator) result(status)
    type(c_ptr), intent(in) :: context
    type(cbgen_allocator_t), intent(in), optional :: allocator
    integer(c_int) :: status
    type(cbgen_allocator_t), target :: given
    if (.not. present(allocator)) then
      status = c_set_allocator(context, c_null_ptr)
      return
    end if
    given = allocator
    given%struct_size = c_sizeof(given)
    status = c_set_allocator(context, c_loc(given))
  end function

  function cbgen_message(context) result(text)
    type(c_ptr), intent(in) :: context
    character(:), allocatable :: text
    text = text_of(c_message(context))
  end function

  function cbgen_version() result(text)
    character(:), allocatable :: text
    text = text_of(c_version())
  end function

  function cbgen_status_name(status) result(text)
    integer(c_int), intent(in) :: status
    character(:), allocatable :: text
    text = text_of(c_status_name(status))
  end function

  ! ---- operators

  !> On success `op` is the caller's (cbgen_operator_free).
  function cbgen_compile(context, matrix, op, request) result(status)
    type(c_ptr), intent(in) :: context
    type(cbgen_csr_t), intent(in) :: matrix
    type(c_ptr), intent(out) :: op
    type(cbgen_request_t), intent(in), optional :: request
    integer(c_int) :: status
    type(cbgen_csr_t), target :: given
    type(cbgen_request_t), target :: asked
    given = matrix
    given%struct_size = c_sizeof(given)
    if (present(request)) asked = request
    asked%struct_size = c_sizeof(asked)
    status = c_compile(context, c_loc(given), c_loc(asked), op)
  end function

  function cbgen_compile_matrix(context, matrix, op, request) result(status)
    type(c_ptr), intent(in) :: context
    type(cbgen_matrix_t), intent(in) :: matrix
    type(c_ptr), intent(out) :: op
    type(cbgen_request_t), intent(in), optional :: request
    integer(c_int) :: status
    type(cbgen_matrix_t), target :: given
    type(cbgen_request_t), target :: asked
    given = matrix
    given%struct_size = c_sizeof(given)
    if (present(request)) asked = request
    asked%struct_size = c_sizeof(asked)
    status = c_compile_matrix(context, c_loc(given), c_loc(asked), op)
  end function

  function cbgen_multiply_many(op, products) result(status)
    type(c_ptr), intent(in) :: op
    type(cbgen_products_t), intent(in) :: products
    integer(c_int) :: status
    type(cbgen_products_t) :: given
    given = products
    given%struct_size = c_sizeof(given)
    status = c_multiply_many(op, given)
  end function

  function cbgen_multiply(op, product) result(status)
    type(c_ptr), intent(in) :: op
    type(cbgen_product_t), intent(in) :: product
    integer(c_int) :: status
    type(cbgen_product_t) :: given
    given = product
    given%struct_size = c_sizeof(given)
    status = c_multiply(op, given)
  end function

  function cbgen_update_values(op, update) result(status)
    type(c_ptr), intent(in) :: op
    type(cbgen_update_t), intent(in) :: update
    integer(c_int) :: status
    type(cbgen_update_t) :: given
    given = update
    given%struct_size = c_sizeof(given)
    status = c_update_values(op, given)
  end function

  function cbgen_operator_info(op, info) result(status)
    type(c_ptr), intent(in) :: op
    type(cbgen_info_t), intent(out) :: info
    integer(c_int) :: status
    info%struct_size = c_sizeof(info)
    status = c_operator_info(op, info)
  end function

  function cbgen_operator_message(op) result(text)
    type(c_ptr), intent(in) :: op
    character(:), allocatable :: text
    text = text_of(c_operator_message(op))
  end function

  function cbgen_operator_source(op) result(text)
    type(c_ptr), intent(in) :: op
    character(:), allocatable :: text
    integer(c_size_t) :: length
    text = text_of(c_operator_source(op, length))
  end function

  function cbgen_operator_plan(op) result(text)
    type(c_ptr), intent(in) :: op
    character(:), allocatable :: text
    text = text_of(c_operator_plan(op))
  end function

  function cbgen_operator_plan_json(op) result(text)
    type(c_ptr), intent(in) :: op
    character(:), allocatable :: text
    text = text_of(c_operator_plan_json(op))
  end function

  function cbgen_operator_key(op) result(text)
    type(c_ptr), intent(in) :: op
    character(:), allocatable :: text
    text = text_of(c_operator_key(op))
  end function

  ! ---- linear programs: vectors are addresses in device memory

  !> On success `lp` is the caller's (cbgen_lp_free).
  function cbgen_lp_create(a, transposed, lp, options) result(status)
    type(c_ptr), intent(in) :: a, transposed
    type(c_ptr), intent(out) :: lp
    type(cbgen_lp_options_t), intent(in), optional :: options
    integer(c_int) :: status
    type(cbgen_lp_options_t), target :: asked
    if (present(options)) asked = options
    asked%struct_size = c_sizeof(asked)
    status = c_lp_create(a, transposed, c_loc(asked), lp)
  end function

  !> Without options it has those of the solver.
  function cbgen_lp_clone(lp, clone, options) result(status)
    type(c_ptr), intent(in) :: lp
    type(c_ptr), intent(out) :: clone
    type(cbgen_lp_options_t), intent(in), optional :: options
    integer(c_int) :: status
    type(cbgen_lp_options_t), target :: asked
    if (.not. present(options)) then
      status = c_lp_clone(lp, c_null_ptr, clone)
      return
    end if
    asked = options
    asked%struct_size = c_sizeof(asked)
    status = c_lp_clone(lp, c_loc(asked), clone)
  end function

  !> Without a stream on the default one.
  function cbgen_lp_solve(lp, problem, x, y, stream) result(status)
    type(c_ptr), intent(in) :: lp, x, y
    type(cbgen_lp_problem_t), intent(in) :: problem
    type(c_ptr), intent(in), optional :: stream
    integer(c_int) :: status
    type(cbgen_lp_problem_t) :: given
    type(c_ptr) :: on
    given = problem
    given%struct_size = c_sizeof(given)
    on = c_null_ptr
    if (present(stream)) on = stream
    status = c_lp_solve(lp, given, x, y, on)
  end function

  function cbgen_lp_scales(context, matrix, row_scales, column_scales) result(status)
    type(c_ptr), intent(in) :: context, row_scales, column_scales
    type(cbgen_csr_t), intent(in) :: matrix
    integer(c_int) :: status
    type(cbgen_csr_t) :: given
    given = matrix
    given%struct_size = c_sizeof(given)
    status = c_lp_scales(context, given, row_scales, column_scales)
  end function

  function cbgen_lp_form(lp) result(text)
    type(c_ptr), intent(in) :: lp
    character(:), allocatable :: text
    text = text_of(c_lp_form(lp))
  end function

  function cbgen_lp_message(lp) result(text)
    type(c_ptr), intent(in) :: lp
    character(:), allocatable :: text
    text = text_of(c_lp_message(lp))
  end function

  ! ---- generation

  !> On success `kernel` is the caller's (cbgen_kernel_free).
  function cbgen_generate(context, matrix, kernel) result(status)
    type(c_ptr), intent(in) :: context
    type(cbgen_csr_t), intent(in) :: matrix
    type(c_ptr), intent(out) :: kernel
    integer(c_int) :: status
    type(cbgen_csr_t) :: given
    given = matrix
    given%struct_size = c_sizeof(given)
    status = c_generate(context, given, kernel)
  end function

  function cbgen_generate_matrix(context, matrix, kernel) result(status)
    type(c_ptr), intent(in) :: context
    type(cbgen_matrix_t), intent(in) :: matrix
    type(c_ptr), intent(out) :: kernel
    integer(c_int) :: status
    type(cbgen_matrix_t) :: given
    given = matrix
    given%struct_size = c_sizeof(given)
    status = c_generate_matrix(context, given, kernel)
  end function

  function cbgen_kernel_source(kernel) result(text)
    type(c_ptr), intent(in) :: kernel
    character(:), allocatable :: text
    integer(c_size_t) :: length
    text = text_of(c_kernel_source(kernel, length))
  end function

  function cbgen_kernel_symbol(kernel) result(text)
    type(c_ptr), intent(in) :: kernel
    character(:), allocatable :: text
    text = text_of(c_kernel_symbol(kernel))
  end function

  function cbgen_kernel_plan(kernel) result(text)
    type(c_ptr), intent(in) :: kernel
    character(:), allocatable :: text
    text = text_of(c_kernel_plan(kernel))
  end function

  function cbgen_kernel_plan_json(kernel) result(text)
    type(c_ptr), intent(in) :: kernel
    character(:), allocatable :: text
    text = text_of(c_kernel_plan_json(kernel))
  end function

  ! ---- texts

  function terminated(text) result(characters)
    character(*), intent(in) :: text
    character(:, kind=c_char), allocatable :: characters
    characters = trim(text)//c_null_char
  end function

  !> A copy; of NULL the empty text.
  function text_of(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: characters(:)
    integer(c_size_t) :: i, length
    length = 0
    if (c_associated(address)) length = c_strlen(address)
    allocate (character(length) :: text)
    if (length == 0) return
    call c_f_pointer(address, characters, [length])
    do i = 1, length
      text(i:i) = characters(i)
    end do
  end function

end module
