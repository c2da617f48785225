#include "host_array.hpp"

#include "kernel_run.hpp"

namespace tegula::c {
namespace {

/// f(offset, bytes) for each contiguous run of the array: its rows, joined where they follow
/// each other.
template <class F> void for_each_run(HostArray const& array, F const& f) {
  std::int64_t begin = 0, end = 0;
  for (std::int64_t i = 0; i < array.extents[0]; ++i) {
    for (std::int64_t j = 0; j < array.extents[1]; ++j) {
      for (std::int64_t k = 0; k < array.extents[2]; ++k) {
        std::int64_t const at = i * array.strides[0] + j * array.strides[1] + k * array.strides[2];
        if (at != end) {
          if (end > begin) f(begin, end - begin);
          begin = at;
        }
        end = at + array.row;
      }
    }
  }
  f(begin, end - begin);
}

}  // namespace

std::int64_t HostArray::bytes() const {
  std::int64_t last = row;
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    last += (extents[axis] - 1) * strides[axis];
  return last;
}

void require_memory(char const* operation, std::initializer_list<HostArray> arrays) {
  double bytes = 0;
  for (HostArray const& array : arrays)
    bytes += array.address == nullptr ? 0 : 2 * static_cast<double>(array.bytes());
  tool::require_memory(operation, bytes);
}

OnMachine::OnMachine(Machine const& machine, HostArray const& array) : array_(array) {
  if (array.address == nullptr) return;
  shift_ = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(array.address) % 16);
  allocation_.emplace(machine, array.bytes() + shift_, array.name);
}

void* OnMachine::data() const {
  return allocation_ ? static_cast<char*>(allocation_->data()) + shift_ : nullptr;
}

void OnMachine::upload() {
  if (!allocation_) return;
  for_each_run(array_, [&](std::int64_t offset, std::int64_t bytes) {
    allocation_->upload(static_cast<char const*>(array_.address) + offset, bytes, offset + shift_);
  });
}

void OnMachine::download(void* to) const {
  if (!allocation_) return;
  for_each_run(array_, [&](std::int64_t offset, std::int64_t bytes) {
    allocation_->download(static_cast<char*>(to) + offset, bytes, offset + shift_);
  });
}

}  // namespace tegula::c
