#include "machine/tensor_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "machine/cluster.hpp"
#include "values/place.hpp"

namespace tegula::sim {

void TensorMemory::reset(bool exists) {
  allocations.clear();
  freed.clear();
  waiters.clear();
  relinquished = false;
  if (!exists) return;
  if (data_ == nullptr) data_ = std::make_unique<std::uint32_t[]>(kTensorLanes * kTensorColumns);
  std::fill_n(data_.get(), kTensorLanes * kTensorColumns, 0xffffffffu);
}

TensorAllocation const* TensorMemory::holding(int column, int columns) const {
  for (TensorAllocation const& allocation : allocations) {
    if (column >= allocation.column && column + columns <= allocation.column + allocation.columns)
      return &allocation;
  }
  return nullptr;
}

int TensorMemory::room_for(int columns) const {
  int column = 0;
  for (TensorAllocation const& allocation : allocations) {
    if (allocation.column - column >= columns) return column;
    column = allocation.column + allocation.columns;
  }
  return kTensorColumns - column >= columns ? column : -1;
}

int TensorMemory::free_columns() const {
  int free = kTensorColumns;
  for (TensorAllocation const& allocation : allocations) free -= allocation.columns;
  return free;
}

std::string Cta::tensor_place(int lane, int column) const {
  TensorAllocation const* const own = tensor_.holding(column, 1);
  std::string const place =
      fmt::format("lane {}, column {} of ", lane, own == nullptr ? column : column - own->column);
  if (own == nullptr || own->holder.empty()) return place + "tensor memory";
  return place + own->holder;
}

int Cta::take_tensor_columns(int columns, SourceLocation where, std::string holder) {
  int column = tensor_.room_for(columns);
  while (column < 0) {
    tensor_.waiters.push_back({&current_thread(), columns, where});
    cluster_.block();
    column = tensor_.room_for(columns);
  }
  auto const next = std::find_if(tensor_.allocations.begin(), tensor_.allocations.end(),
                                 [&](auto const& other) { return other.column > column; });
  tensor_.allocations.insert(
      next, {column, columns, where, current_thread().index / 32, std::move(holder)});
  return column;
}

void Cta::give_back_tensor_columns(int column) {
  auto const found = std::find_if(tensor_.allocations.begin(), tensor_.allocations.end(),
                                  [&](auto const& other) { return other.column == column; });
  tensor_.freed.push_back(*found);
  tensor_.allocations.erase(found);
  for (TensorWaiter const& waiter : tensor_.waiters) set_ready(*waiter.thread);
  tensor_.waiters.clear();
  cluster_.progressed();
}

void Cta::tensor_waiters(std::vector<std::string>& clauses) const {
  for (TensorWaiter const& waiter : tensor_.waiters)
    clauses.push_back(fmt::format(
        "warp {} waits at tcgen05.alloc ({}) for {} columns of tensor memory, of which {} are free",
        waiter.thread->index / 32, place_text(waiter.where), waiter.columns,
        tensor_.free_columns()));
}

/// All threads have returned: tensor memory that is not freed is lost to the CTAs that come next.
void Cta::check_tensor_memory_freed() {
  for (TensorAllocation const& allocation : tensor_.allocations) {
    report(FindingKind::tensor_memory_misuse, allocation.where, {rank_, allocation.warp, -1},
           allocation.holder, "",
           fmt::format("the CTA exits and has not freed the {} columns of tensor memory that "
                       "tcgen05.alloc gave it: a tcgen05_dealloc before the exit would",
                       allocation.columns));
  }
}

}  // namespace tegula::sim
