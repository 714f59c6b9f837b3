// What the bindings of the kernel machine share: the two types of kernel values, and their blocks.
#pragma once

#include <memory>
#include <tuple>
#include <utility>

#include "bindings.hpp"
#include "kernel/dense_kernel.hpp"

namespace widemargin {

template <class T>
const KernelLoopsOf<T>& loops_of() {
  if constexpr (sizeof(T) == sizeof(float))
    return kernel_loops().float32;
  else
    return kernel_loops().float64;
}

inline bool is_double(nb::dlpack::dtype type) {
  require(type == nb::dtype<float>() || type == nb::dtype<double>(),
          "kernel values must be float32 or float64");
  return type == nb::dtype<double>();
}

// f(T) with the type of the kernel values.
template <class F>
auto with_type(nb::dlpack::dtype type, F&& f) {
  return is_double(type) ? f(double()) : f(float());
}

inline void check_range(const std::int64_t* numbers, std::int64_t n, std::int64_t end,
                        const char* message) {
  for (std::int64_t k = 0; k < n; ++k) require(numbers[k] >= 0 && numbers[k] < end, message);
}

using Matrix = nb::ndarray<nb::ndim<2>, nb::device::cpu>;  // rows may be apart

inline void require_rows(const Matrix& m, const char* message) {
  const bool contiguous = m.shape(1) < 2 || m.stride(1) == 1;
  require(contiguous && (m.shape(0) < 2 || m.stride(0) >= std::int64_t(m.shape(1))), message);
}

// Of a matrix that `require_rows` and the type were checked of.
template <class T>
MatrixArg<T> matrix_arg(const Matrix& m) {
  return {static_cast<T*>(m.data()), std::int64_t(m.shape(0)), std::int64_t(m.shape(1)),
          m.stride(0)};
}

// A kernel on dense rows, of one of the two types; it does not change.
class AnyDenseKernel {
 public:
  template <class T>
  explicit AnyDenseKernel(DenseKernel<T>&& kernel) {
    std::get<Shared<T>>(kernels_) = std::make_shared<const DenseKernel<T>>(std::move(kernel));
  }
  template <class T>
  std::shared_ptr<const DenseKernel<T>> of() const {  // null if it has the other type
    return std::get<Shared<T>>(kernels_);
  }

 private:
  template <class T>
  using Shared = std::shared_ptr<const DenseKernel<T>>;
  std::tuple<Shared<float>, Shared<double>> kernels_;
};

}  // namespace widemargin
