#pragma once

/// What of the arguments is left out, and follows from the others.

#include <cstdint>
#include <optional>

namespace tegula::device {

template <class T, class Default> void fill_in(std::optional<T>& value, Default const& otherwise) {
  if (!value) value = otherwise;
}

/// Left out, or of an axis of one element: no step is taken along it, so what is said of it counts
/// only where it could be one, of elements of a byte or more.
inline void fill_in_stride(std::optional<std::int64_t>& stride, std::int64_t extent,
                           std::int64_t otherwise) {
  if (!stride || (extent == 1 && (*stride < otherwise || *stride % 16 != 0))) stride = otherwise;
}

}  // namespace tegula::device
