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
  for (auto& collector : collectors) collector.clear();
  of_pair.reset();
  cta_group = 0;
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
  return fmt::format(
      "{}{}{}", place, own == nullptr || own->holder.empty() ? "tensor memory" : own->holder,
      current_thread().cta == this ? "" : fmt::format(" of CTA {} of the cluster", rank_));
}

void TensorMemory::insert(TensorAllocation const& allocation) {
  auto const next = std::find_if(allocations.begin(), allocations.end(), [&](auto const& other) {
    return other.column > allocation.column;
  });
  allocations.insert(next, allocation);
}

int TensorMemory::room_for(int columns, TensorMemory const& other) const {
  for (int column = 0; column + columns <= kTensorColumns; column += kLeastTensorColumns) {
    auto const taken = [&](TensorAllocation const& allocation) {
      return allocation.column < column + columns &&
             column < allocation.column + allocation.columns;
    };
    if (std::none_of(allocations.begin(), allocations.end(), taken) &&
        std::none_of(other.allocations.begin(), other.allocations.end(), taken))
      return column;
  }
  return -1;
}

Cta* Cta::pair_peer() const {
  int const peer = rank_ ^ 1;
  return peer < cluster_.ctas() ? &cluster_.cta(peer) : nullptr;
}

void Cta::give_tensor_columns(TensorAllocation const& allocation) {
  tensor_.insert(allocation);
  if (check_) observers().tensor_allocated(*this, allocation.column, allocation.columns);
}

int Cta::take_tensor_columns(TensorAllocation wanted) {
  auto const wait = [&] {
    tensor_.waiters.push_back({&current_thread(), wanted.columns, wanted.where});
    cluster_.block();
  };
  if (wanted.ctas == 1) {
    while ((wanted.column = tensor_.room_for(wanted.columns)) < 0) wait();
    give_tensor_columns(wanted);
    return wanted.column;
  }
  Cta& peer = *pair_peer();
  tensor_.of_pair = TensorPairRequest{std::move(wanted)};
  while (!tensor_.of_pair->granted && !grant_to_pair(peer)) wait();
  int const column = tensor_.of_pair->wanted.column;
  tensor_.of_pair.reset();
  return column;
}

/// Gives both CTAs of a pair that wait for columns the same ones. False where the peer does not
/// wait yet, or there are none.
bool Cta::grant_to_pair(Cta& peer) {
  if (!peer.tensor_.of_pair || peer.tensor_.of_pair->granted) return false;
  TensorPairRequest& own = *tensor_.of_pair;
  TensorPairRequest& other = *peer.tensor_.of_pair;
  if (own.wanted.columns != other.wanted.columns)
    fail(FindingKind::tensor_memory_misuse, own.wanted.where, here(-1),
         fmt::format("tcgen05.alloc of {} columns, where the other CTA of the pair asks for {} "
                     "({}): both ask for as many",
                     own.wanted.columns, other.wanted.columns, place_text(other.wanted.where)));
  int const column = tensor_.room_for(own.wanted.columns, peer.tensor_);
  if (column < 0) return false;
  for (TensorPairRequest* const request : {&own, &other}) {
    request->wanted.column = column;
    request->granted = true;
  }
  give_tensor_columns(own.wanted);
  peer.give_tensor_columns(other.wanted);
  peer.wake_tensor_waiters();
  return true;
}

void Cta::wake_tensor_waiters() {
  for (TensorWaiter const& waiter : tensor_.waiters) set_ready(*waiter.thread);
  tensor_.waiters.clear();
  cluster_.progressed();
}

void Cta::give_back_tensor_columns(int column) {
  auto const found = std::find_if(tensor_.allocations.begin(), tensor_.allocations.end(),
                                  [&](auto const& other) { return other.column == column; });
  bool const of_pair = found->ctas == 2;
  tensor_.freed.push_back(*found);
  tensor_.allocations.erase(found);
  wake_tensor_waiters();
  if (of_pair) pair_peer()->wake_tensor_waiters();
}

void Cta::tensor_waiters(std::vector<std::string>& clauses) const {
  for (TensorWaiter const& waiter : tensor_.waiters)
    clauses.push_back(fmt::format(
        "warp {} waits at tcgen05.alloc ({}) for {} columns of tensor memory, of which {} are free{}",
        waiter.thread->index / 32, place_text(waiter.where), waiter.columns, tensor_.free_columns(),
        tensor_.of_pair && !pair_peer()->tensor_.of_pair
            ? fmt::format(", and for CTA {}, the other of the pair, to ask for them, too",
                          pair_peer()->rank_)
            : ""));
}

/// All threads have returned: tensor memory that is not freed is lost to the CTAs that come next.
void Cta::check_tensor_memory_freed() {
  for (TensorAllocation const& allocation : tensor_.allocations) {
    report(FindingKind::tensor_memory_misuse, allocation.where, {rank_, allocation.warp, -1},
           allocation.holder, "",
           fmt::format("the CTA exits and has not freed the {} columns of tensor memory that "
                       "tcgen05.alloc gave it: a tcgen05_dealloc {}before the exit would",
                       allocation.columns, allocation.ctas == 2 ? "by each CTA of the pair " : ""));
  }
}

}  // namespace tegula::sim
