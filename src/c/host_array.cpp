#include "host_array.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

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

void OnMachine::download(void* to, std::int64_t offset, std::int64_t bytes) const {
  if (allocation_) allocation_->download(to, bytes, offset + shift_);
}

BytesOnMachine::BytesOnMachine(Machine const& machine, std::vector<Bytes> const& all)
    : pointers_(all.size()) {
  auto const begin = [&](std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(all[i].address);
  };
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t x, std::size_t y) { return begin(x) < begin(y); });
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (std::size_t first = 0, next = 0; first < order.size(); first = next) {
    // What begins before the end of all those before it shares bytes with one of them. What merely
    // follows another does not: a kernel that runs from one into the other is to be found out. An
    // array without bytes, or without an address, shares none.
    std::uintptr_t const address = begin(order[first]);
    auto span = static_cast<std::uint64_t>(all[order[first]].count);
    std::string name = all[order[first]].name;
    for (next = first + 1; next < order.size() && address != 0; ++next) {
      Bytes const& bytes = all[order[next]];
      std::uint64_t const offset = begin(order[next]) - address;
      if (offset >= span) break;
      span = std::min(kMost, std::max(span, offset + static_cast<std::uint64_t>(bytes.count)));
      if (name != bytes.name) name.append(" and ").append(bytes.name);
    }
    HostArray const whole = {.name = name.c_str(),
                             .address = all[order[first]].address,
                             .row = static_cast<std::int64_t>(span)};
    Shared& shared =
        shared_.emplace_back(Shared{OnMachine(machine, whole), all[order[first]].address, {}});
    shared.copy.upload();
    for (std::size_t i = first; i < next; ++i) {
      Bytes const& bytes = all[order[i]];
      shared.parts.push_back(bytes);
      pointers_[order[i]] =
          address == 0 ? nullptr
                       : static_cast<char*>(shared.copy.data()) + (begin(order[i]) - address);
    }
  }
}

void BytesOnMachine::download() const {
  for (Shared const& shared : shared_) {
    for (Bytes const& bytes : shared.parts) {
      if (!bytes.is_constant)
        shared.copy.download(bytes.address,
                             static_cast<char*>(bytes.address) - static_cast<char*>(shared.address),
                             bytes.count);
    }
  }
}

}  // namespace tegula::c
