// The one way in which the core refuses an argument.
#pragma once

#include <stdexcept>

namespace widemargin {

inline void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);  // ValueError in Python
}

}  // namespace widemargin
