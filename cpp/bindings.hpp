// What the binding files share: array types, checks that raise ValueError, arrays back to NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "additive/problem.hpp"
#include "kernel/problem.hpp"
#include "require.hpp"

namespace widemargin {

namespace nb = nanobind;
using namespace nb::literals;

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;  // read only
using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;         // written in place
using Strided = nb::ndarray<nb::ro, nb::device::cpu>;

template <class T>
const T* pointer(const Array& a, std::int64_t size, const char* message) {
  require(a.dtype() == nb::dtype<T>() && std::int64_t(a.size()) == size, message);
  return static_cast<const T*>(a.data());
}
template <class T>
T* pointer(const Output& a, std::int64_t size, const char* message) {
  require(a.dtype() == nb::dtype<T>() && std::int64_t(a.size()) == size, message);
  return static_cast<T*>(a.data());
}
// A read-only array gives a const pointer, an output a mutable one.
template <class A>
auto number_pointer(const A& a, bool is_double, std::int64_t size, const char* message)
    -> decltype(a.data()) {
  if (is_double) return pointer<double>(a, size, message);
  return pointer<float>(a, size, message);
}

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values, std::vector<std::size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.data(), owner);
}

template <class T>
nb::ndarray<nb::numpy, T> vector_to_numpy(std::vector<T>&& values) {
  const std::size_t n = values.size();
  return to_numpy(std::move(values), {n});
}

// The loops of the instruction set in use.
const AdditiveLoops& additive_loops(bool is_double);
const KernelLoops& kernel_loops();

void bind_codes(nb::module_& m);
void bind_additive(nb::module_& m);
void bind_encode(nb::module_& m);
void bind_kernel(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_working_set(nb::module_& m);
void bind_svmlight(nb::module_& m);

}  // namespace widemargin
