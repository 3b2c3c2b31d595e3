! SPDX-License-Identifier: Apache-2.0
!> Every function of the module cbgen is called, and what it gives is looked at. test_fortran.py builds and runs it on the
!> fake CUDA.
module telling
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: lines = 0, given = 0, taken_back = 0

  interface
    function cuda_malloc(memory, bytes) bind(c, name='cudaMalloc') result(status)
      import :: c_ptr, c_size_t, c_int
      type(c_ptr), intent(out) :: memory
      integer(c_size_t), value :: bytes
      integer(c_int) :: status
    end function
    function cuda_free(memory) bind(c, name='cudaFree') result(status)
      import :: c_ptr, c_int
      type(c_ptr), value :: memory
      integer(c_int) :: status
    end function
  end interface

contains

  function give(user, bytes, stream) result(memory) bind(c)
    type(c_ptr), value :: user, stream
    integer(c_size_t), value :: bytes
    type(c_ptr) :: memory
    if (c_associated(user) .or. c_associated(stream)) error stop 'nobody gave these'
    given = given + 1
    if (cuda_malloc(memory, bytes) /= 0) memory = c_null_ptr
  end function

  subroutine take_back(user, memory, bytes, stream) bind(c)
    type(c_ptr), value :: user, memory, stream
    integer(c_size_t), value :: bytes
    if (c_associated(user) .or. c_associated(stream) .or. bytes < 1) error stop 'nobody gave these'
    if (cuda_free(memory) == 0) taken_back = taken_back + 1
  end subroutine

  subroutine tell(user, line) bind(c)
    type(c_ptr), value :: user, line
    integer(c_int), pointer :: number
    if (.not. c_associated(line)) return
    call c_f_pointer(user, number)
    lines = lines + number
  end subroutine
end module

program fortran_api
  use, intrinsic :: iso_c_binding
  use cbgen
  use telling
  implicit none

  interface
    function cuda_memcpy(to, from, bytes, kind) bind(c, name='cudaMemcpy') result(status)
      import :: c_ptr, c_size_t, c_int
      type(c_ptr), value :: to, from
      integer(c_size_t), value :: bytes
      integer(c_int), value :: kind
      integer(c_int) :: status
    end function
  end interface

  ! 4 x 3:  2 . 1 / . 3 . / . . . / 4 . 5
  integer(c_int), target :: row_ptr(5) = [1, 3, 4, 4, 6], col_idx(5) = [1, 3, 2, 1, 3], rows(5) = [1, 1, 2, 4, 4]
  real(c_double), target :: values(5) = [2, 1, 3, 4, 5], twice(5) = [4, 2, 6, 8, 10], x(3) = [1, 2, 3], y(4)
  real(c_double), parameter :: expected(4) = [5, 6, 0, 19]
  character(kind=c_char), target :: name(5) = ['t', 'i', 'n', 'y', c_null_char]
  integer(c_int), target :: one = 1
  integer :: failures = 0
  type(c_ptr) :: context, A, B, kernel
  type(cbgen_csr_t) :: matrix
  type(cbgen_product_t) :: product

  call check(cbgen_context_create(context) == CBGEN_OK, 'a context')
  call check(len(cbgen_message(context)) == 0, 'no message before the first failure')
  call check(cuda_malloc(product%x, 24_c_size_t) == 0 .and. cuda_malloc(product%y, 32_c_size_t) == 0, 'vectors')
  call check(cuda_memcpy(product%x, c_loc(x), 24_c_size_t, 1) == 0, 'x')
  product%alpha = 1
  matrix%rows = 4
  matrix%cols = 3
  matrix%nnz = 5
  matrix%index_base = 1
  matrix%row_ptr = c_loc(row_ptr)
  matrix%col_idx = c_loc(col_idx)
  matrix%values = c_loc(values)
  matrix%name = c_loc(name)
  call check_errors()
  call check_operators()
  call check_forms()
  call check_saving()
  call check_generation()
  call check_allocator()
  call check_linear_program()
  call check(cuda_free(product%x) == 0 .and. cuda_free(product%y) == 0, 'vectors are freed')
  call cbgen_context_destroy(context)
  call cbgen_trim()
  if (failures > 0) stop 1
  print '(2a)', 'the Fortran module does what it says: cbgen ', cbgen_version()

contains

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(2a)', 'FAILED: ', what
    failures = failures + 1
  end subroutine

  subroutine check_errors()
    type(cbgen_csr_t) :: wrong
    call check(cbgen_set(context, 'recipe', 'none') == CBGEN_ERROR_ARGUMENT, 'no such recipe')
    call check(index(cbgen_message(context), "'none'") > 0, 'the message names the recipe')
    call check(cbgen_set(context, 'recipe   ', 'auto ') == CBGEN_OK, 'blanks at the end do not count')
    call check(cbgen_status_name(CBGEN_ERROR_MEMORY) == 'memory', 'the name of a status')
    wrong = matrix
    wrong%cols = 2
    call check(cbgen_compile(context, wrong, A) == CBGEN_ERROR_ARGUMENT, 'a column out of range')
    call check(.not. c_associated(A), 'no operator after a failure')
  end subroutine

  subroutine check_operators()
    type(cbgen_request_t) :: request
    type(cbgen_update_t), target :: update
    type(cbgen_info_t) :: info
    type(c_ptr) :: other
    real(c_double) :: seconds
    integer(c_int32_t) :: places(4), places_of_x(3)
    request%values = CBGEN_VALUES_MUTABLE
    request%expected_products = 100
    call check(cbgen_set_log(context, c_funloc(tell), c_loc(one)) == CBGEN_OK, 'a log')
    call check(cbgen_compile(context, matrix, A, request) == CBGEN_OK, cbgen_message(context))
    call check(lines > 0, 'the log was told')
    call check(cbgen_set_log(context, c_null_funptr, c_null_ptr) == CBGEN_OK, 'no log')
    call check_product(A, 1, 'an operator')
    call check(cbgen_operator_clone(A, B) == CBGEN_OK, 'a clone')
    update%values = c_loc(twice)
    call check(cbgen_update_values(A, update) == CBGEN_OK, cbgen_operator_message(A))
    call check_product(B, 2, 'a clone with new values')
    call check(cbgen_operator_copy(A, c_null_ptr, other) == CBGEN_OK, 'a copy')
    update%values = c_loc(values)
    call check(cbgen_update_values(A, update) == CBGEN_OK, cbgen_operator_message(A))
    call check_product(other, 2, 'a copy with values of its own')
    call cbgen_operator_free(other)
    update%struct_size = c_sizeof(update)
    call check(cbgen_operator_copy(A, c_loc(update), other) == CBGEN_OK, 'a copy with new values')
    call check_product(other, 1, 'a copy with new values')
    call cbgen_operator_free(other)
    call check(cbgen_operator_info(A, info) == CBGEN_OK, 'info')
    call check(info%rows == 4 .and. info%cols == 3 .and. info%nnz == 5 .and. info%entries == 5, 'sizes in the info')
    call check(info%values == CBGEN_VALUES_MUTABLE .and. info%vector_type == CBGEN_F64, 'kinds in the info')
    call check(info%total_seconds > 0 .and. info%bytes_per_nonzero > 0, 'times in the info')
    call check(cbgen_operator_measure(A, seconds) == CBGEN_OK .and. seconds > 0, 'a measurement')
    call check(cbgen_operator_permutation(A, places, places_of_x) == CBGEN_OK, 'a permutation')
    call check(all(places == [0, 1, 2, 3]) .and. all(places_of_x == [0, 1, 2]), 'the order of vectors')
    call check(cbgen_operator_specialise(A) == CBGEN_OK, 'a specialised kernel')
    call check(index(cbgen_operator_source(A), '__global__') > 0, 'the text')
    call check(index(cbgen_operator_plan(A), '(spmv ') == 1 .and. index(cbgen_operator_plan_json(A), '{') == 1, 'the plan')
    call check(len(cbgen_operator_key(A)) == 16, 'the key')
    call cbgen_operator_unbind(A)
    call cbgen_operator_free(A)
    call cbgen_operator_free(B)
    call check(cbgen_compile(context, matrix, A) == CBGEN_OK, 'without a request')
    call check(cbgen_update_values(A, update) == CBGEN_ERROR_ARGUMENT, 'values that were not said to change')
    call check(len(cbgen_operator_message(A)) > 0, 'why they cannot be renewed')
    call cbgen_operator_free(A)
  end subroutine

  subroutine check_forms()
    type(cbgen_matrix_t) :: coo
    coo%format = CBGEN_COO
    coo%rows = 4
    coo%cols = 3
    coo%nnz = 5
    coo%index_base = 1
    coo%pointers = c_loc(rows)
    coo%indices = c_loc(col_idx)
    coo%values = c_loc(values)
    call check(cbgen_compile_matrix(context, coo, A) == CBGEN_OK, cbgen_message(context))
    call check_product(A, 1, 'COO')
    call cbgen_operator_free(A)
    call check(cbgen_generate_matrix(context, coo, kernel) == CBGEN_OK, cbgen_message(context))
    call cbgen_kernel_free(kernel)
  end subroutine

  subroutine check_saving()
    integer(c_size_t) :: length, capacity
    integer(c_int8_t), allocatable, target :: bytes(:)
    call check(cbgen_compile(context, matrix, A) == CBGEN_OK, cbgen_message(context))
    call check(cbgen_operator_save(A, c_null_ptr, 0_c_size_t, length) == CBGEN_OK .and. length > 0, 'the length')
    allocate (bytes(length))
    capacity = length
    call check(cbgen_operator_save(A, c_loc(bytes), capacity, length) == CBGEN_OK, cbgen_operator_message(A))
    call check(cbgen_operator_load(context, c_loc(bytes), length, B) == CBGEN_OK, cbgen_message(context))
    call check_product(B, 1, 'saved and loaded')
    call cbgen_operator_free(A)
    call cbgen_operator_free(B)
  end subroutine

  subroutine check_generation()
    integer(c_size_t) :: length
    call check(cbgen_generate(context, matrix, kernel) == CBGEN_OK, cbgen_message(context))
    call check(cbgen_kernel_symbol(kernel) == 'tiny', 'the symbol')
    call check(index(cbgen_kernel_source(kernel), '__global__') > 0, 'the text')
    call check(index(cbgen_kernel_plan(kernel), '(spmv ') == 1 .and. index(cbgen_kernel_plan_json(kernel), '{') == 1, 'plans')
    call check(c_associated(cbgen_kernel_data(kernel, length)) .and. length > 0, 'data')
    call check(cbgen_kernel_embedded(kernel) == 1 .and. cbgen_kernel_stored_bytes(kernel) > 0, 'sizes')
    call cbgen_kernel_free(kernel)
  end subroutine

  subroutine check_allocator()
    type(c_ptr) :: other
    type(cbgen_allocator_t) :: allocator
    call check(cbgen_context_create(other) == CBGEN_OK, 'another context')
    allocator%allocate = c_funloc(give)
    call check(cbgen_set_allocator(other, allocator) == CBGEN_ERROR_ARGUMENT, 'one function is missing')
    allocator%release = c_funloc(take_back)
    call check(cbgen_set_allocator(other, allocator) == CBGEN_OK, cbgen_message(other))
    call check(cbgen_compile(other, matrix, A) == CBGEN_OK, cbgen_message(other))
    call check_product(A, 1, 'memory of an allocator')
    call cbgen_operator_free(A)
    call cbgen_context_destroy(other)
    call check(given > 0 .and. given == taken_back, 'memory comes from the allocator and goes back')
    call check(cbgen_set_allocator(context) == CBGEN_ERROR_ARGUMENT, 'too late')
  end subroutine

  ! Minimise the sum of x above 0 where A x is at least 2, 3, -1 and 9: (1/6, 1, 5/3).
  subroutine check_linear_program()
    real(c_double), target :: least(4) = [2, 3, -1, 9], ones(3) = 1, zeros(4) = 0, found(3)
    type(c_ptr) :: transposed, lp, clone, row_scales, column_scales, at_x, at_y, cost
    type(cbgen_request_t) :: turned
    type(cbgen_lp_options_t) :: options
    type(cbgen_lp_problem_t) :: problem
    type(cbgen_lp_result_t) :: outcome
    turned%transpose = 1
    call check(cbgen_compile(context, matrix, A) == CBGEN_OK .and. &
               cbgen_compile(context, matrix, transposed, turned) == CBGEN_OK, cbgen_message(context))
    cost = on_gpu(ones)
    at_x = on_gpu(zeros(1:3))
    at_y = on_gpu(zeros)
    row_scales = on_gpu(zeros)
    column_scales = on_gpu(zeros(1:3))
    problem%cost = cost
    problem%row_lower = on_gpu(least)
    call check(cbgen_lp_scales(context, matrix, row_scales, column_scales) == CBGEN_OK, cbgen_message(context))
    options%relative_tolerance = 1e-9_c_double
    options%row_scales = row_scales
    call check(cbgen_lp_create(A, transposed, lp, options) == CBGEN_ERROR_ARGUMENT, 'one of two scales')
    call check(index(cbgen_operator_message(A), 'one is missing') > 0, 'which is missing')
    call check(cbgen_lp_create(A, transposed, lp) == CBGEN_OK, 'without options')
    call cbgen_lp_free(lp)
    options%column_scales = column_scales
    call check(cbgen_lp_create(A, transposed, lp, options) == CBGEN_OK, cbgen_operator_message(A))
    call check(cbgen_lp_form(lp) == 'graph', 'the form')
    call check(cbgen_lp_solve(lp, problem, at_x, at_x) == CBGEN_ERROR_ARGUMENT, 'x and y are the same')
    call check(index(cbgen_lp_message(lp), 'are the same') > 0, 'what is wrong')
    call check(cbgen_lp_solve(lp, problem, at_x, at_y) == CBGEN_OK, cbgen_lp_message(lp))
    call check(cbgen_lp_outcome(lp, outcome) == CBGEN_OK, cbgen_lp_message(lp))
    call check(outcome%reason == CBGEN_REASON_CONVERGED .and. abs(outcome%primal_value - 17/6d0) < 1e-6, 'the value')
    call check(cuda_memcpy(c_loc(found), at_x, 24_c_size_t, 2) == 0, 'x comes back')
    call check(all(abs(found - [1/6d0, 1d0, 5/3d0]) < 1e-5), 'x')
    options%certificate_tolerance = -1
    options%max_iterations = 70
    call check(cbgen_lp_clone(lp, clone, options) == CBGEN_OK, cbgen_lp_message(lp))
    call cbgen_lp_free(clone)
    call check(cbgen_lp_clone(lp, clone) == CBGEN_OK, cbgen_lp_message(lp))
    call cbgen_lp_free(lp)
    problem%row_upper = on_gpu(-least)
    call check(cbgen_lp_solve(clone, problem, at_x, at_y, c_null_ptr) == CBGEN_OK, cbgen_lp_message(clone))
    call check(cbgen_lp_outcome(clone, outcome) == CBGEN_OK .and. outcome%reason == CBGEN_REASON_BREAKDOWN, 'crossed bounds')
    call cbgen_lp_free(clone)
    call cbgen_operator_free(A)
    call cbgen_operator_free(transposed)
    call check(cuda_free(cost) == 0 .and. cuda_free(at_x) == 0 .and. cuda_free(at_y) == 0 .and. &
               cuda_free(row_scales) == 0 .and. cuda_free(column_scales) == 0 .and. &
               cuda_free(problem%row_lower) == 0 .and. cuda_free(problem%row_upper) == 0, 'vectors are freed')
  end subroutine

  function on_gpu(numbers) result(memory)
    real(c_double), intent(in), target :: numbers(:)
    real(c_double), target :: copy(size(numbers))
    type(c_ptr) :: memory
    integer(c_size_t) :: bytes
    copy = numbers
    bytes = 8*size(numbers)
    call check(cuda_malloc(memory, bytes) == 0 .and. cuda_memcpy(memory, c_loc(copy), bytes, 1) == 0, 'a vector')
  end function

  subroutine check_product(op, factor, what)
    type(c_ptr), intent(in) :: op
    integer, intent(in) :: factor
    character(*), intent(in) :: what
    call check(cbgen_multiply(op, product) == CBGEN_OK, what//': '//cbgen_operator_message(op))
    call check(cuda_memcpy(c_loc(y), product%y, 32_c_size_t, 2) == 0, what//': y')
    call check(all(abs(y - factor*expected) <= 0), what//': A x')
  end subroutine

end program
