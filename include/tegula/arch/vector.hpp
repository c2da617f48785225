#pragma once

namespace tegula {

/// N elements that one instruction loads, stores or combines together; N sizeof(T) is 2 to 16
/// bytes.
template <class T, int N> struct alignas(sizeof(T) * N <= 16 ? sizeof(T) * N : 16) Vector {
  T data[N];
};

}  // namespace tegula
