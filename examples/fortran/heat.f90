! SPDX-License-Identifier: Apache-2.0
!> Heat in a square plate by explicit steps, u <- (I + tau Laplace) u, in Fortran with the module cbgen: one operator, two
!> vectors that change places.
!>
!>     heat [N [STEPS]]      N x N cells with insulated edges (256), so that no heat is lost; 200 steps
!>
!> The same steps are made on the host, and compared. Exit status: 0; 1 where they differ; 2 with a message when something
!> failed.
program heat
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use cbgen
  implicit none
  integer(c_int), parameter :: to_device = 1, to_host = 2 ! cudaMemcpyKind
  real(c_double), parameter :: tau = 0.2_c_double

  interface ! of CUDA's run-time library
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
    function cuda_memcpy(to, from, bytes, kind) bind(c, name='cudaMemcpy') result(status)
      import :: c_ptr, c_size_t, c_int
      type(c_ptr), value :: to, from
      integer(c_size_t), value :: bytes
      integer(c_int), value :: kind
      integer(c_int) :: status
    end function
  end interface

  integer :: n, steps, i
  logical :: is_right
  integer(c_int32_t), allocatable, target :: row_ptr(:), col_idx(:)
  real(c_double), allocatable, target :: values(:), u(:), result(:)
  character(kind=c_char), target :: name(6) = ['p', 'l', 'a', 't', 'e', c_null_char]
  type(c_ptr) :: context, step, swapped
  type(cbgen_csr_t) :: matrix
  type(cbgen_request_t) :: request
  type(cbgen_product_t) :: product
  type(cbgen_info_t) :: info

  n = argument(1, 256)
  steps = argument(2, 200)
  if (n < 1 .or. n > 10000 .or. steps < 0) call fail('heat [N [STEPS]]: N is 1 to 10000')
  call make_plate()
  allocate (u(n*n), result(n*n))
  u = 0
  u(size(u)/2 + 1) = 1 ! all heat in one cell

  product%alpha = 1
  call check_cuda(cuda_malloc(product%x, bytes()))
  call check_cuda(cuda_malloc(product%y, bytes()))
  call check_cuda(cuda_memcpy(product%x, c_loc(u), bytes(), to_device))

  if (cbgen_context_create(context) /= CBGEN_OK) call fail('out of memory')
  matrix%rows = n*n
  matrix%cols = n*n
  matrix%nnz = size(values)
  matrix%index_base = 1
  matrix%row_ptr = c_loc(row_ptr)
  matrix%col_idx = c_loc(col_idx)
  matrix%values = c_loc(values)
  matrix%name = c_loc(name)
  request%expected_products = steps
  if (cbgen_compile(context, matrix, step, request) /= CBGEN_OK) call fail(cbgen_message(context))
  call cbgen_context_destroy(context) ! operators outlive it
  if (cbgen_operator_info(step, info) /= CBGEN_OK) call fail(cbgen_operator_message(step))
  print '(4a)', 'cbgen ', cbgen_version(), ': ', cbgen_operator_plan(step)
  print '(f0.1, a, f0.2, a)', 1e3*info%total_seconds, ' ms of set-up, ', info%bytes_per_nonzero, ' bytes per nonzero'

  do i = 1, steps
    if (cbgen_multiply(step, product) /= CBGEN_OK) call fail(cbgen_operator_message(step))
    swapped = product%x
    product%x = product%y
    product%y = swapped
  end do
  call check_cuda(cuda_memcpy(c_loc(result), product%x, bytes(), to_host)) ! waits
  call check_cuda(cuda_free(product%x))
  call check_cuda(cuda_free(product%y))
  call cbgen_operator_free(step)

  do i = 1, steps
    u = multiplied(u)
  end do
  ! a step rounds a cell by some units in its last place, and lets no error grow: rows are >= 0 and sum up to 1
  is_right = all(abs(result - u) <= 16*(steps + 1)*1.2e-16_c_double)
  deallocate (row_ptr, col_idx, values, u, result) ! which a main program keeps to the end of all
  if (is_right) then
    print '(i0, a, i0, a)', steps, ' steps of ', n*n, ' cells: passed'
  else
    print '(i0, a, i0, a)', steps, ' steps of ', n*n, ' cells: FAILED'
    stop 1
  end if

contains

  subroutine fail(message)
    character(*), intent(in) :: message
    write (error_unit, '(2a)') 'heat: ', message
    stop 2, quiet=.true.
  end subroutine

  subroutine check_cuda(status)
    integer(c_int), intent(in) :: status
    if (status /= 0) call fail('a call of CUDA failed')
  end subroutine

  integer function argument(number, standard)
    integer, intent(in) :: number, standard
    character(32) :: text
    integer :: failed
    argument = standard
    if (command_argument_count() < number) return
    call get_command_argument(number, text)
    read (text, *, iostat=failed) argument
    if (failed /= 0) argument = -1
  end function

  integer(c_size_t) function bytes()
    bytes = 8_c_size_t*n*n
  end function

  !> I + tau Laplace, row by row; a cell at an edge has fewer neighbours.
  subroutine make_plate()
    integer :: i, j, k, own
    allocate (row_ptr(n*n + 1), col_idx(5*n*n), values(5*n*n))
    k = 0
    do i = 1, n
      do j = 1, n
        own = (i - 1)*n + j
        row_ptr(own) = k + 1
        if (i > 1) call add(k, own - n, tau)
        if (j > 1) call add(k, own - 1, tau)
        call add(k, own, 1 - tau*(count([i > 1, i < n, j > 1, j < n])))
        if (j < n) call add(k, own + 1, tau)
        if (i < n) call add(k, own + n, tau)
      end do
    end do
    row_ptr(n*n + 1) = k + 1
    col_idx = col_idx(1:k)
    values = values(1:k)
  end subroutine

  subroutine add(k, cell, value)
    integer, intent(inout) :: k
    integer, intent(in) :: cell
    real(c_double), intent(in) :: value
    k = k + 1
    col_idx(k) = cell
    values(k) = value
  end subroutine

  function multiplied(x) result(y)
    real(c_double), intent(in) :: x(:)
    real(c_double) :: y(size(x))
    integer :: row, k
    do row = 1, size(x)
      y(row) = 0
      do k = row_ptr(row), row_ptr(row + 1) - 1
        y(row) = y(row) + values(k)*x(col_idx(k))
      end do
    end do
  end function

end program
