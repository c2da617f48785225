#include "machine/cta.hpp"

#include "machine/cluster.hpp"

namespace tegula::sim {

void AsyncCopies::clear() {
  forgotten += copies.size();
  copies.clear();
  group_ends.clear();
  first_copy = 0;
  first_group = 0;
}

void AsyncCopies::forget_retired() {
  forgotten += first_copy;
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(first_copy));
  group_ends.erase(group_ends.begin(),
                   group_ends.begin() + static_cast<std::ptrdiff_t>(first_group));
  for (std::size_t& end : group_ends) end -= first_copy;
  first_copy = 0;
  first_group = 0;
}

Cta::Cta(Cluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}

void Cta::start(LaunchContext const& launch, Dim3 block) {
  launch_ = &launch;
  block_ = block;
  check_ = launch.options->check;
  races_ = check_ && launch.options->races;
  count_ = launch.options->count;
  generation_ = launch.options->generation;
  recent_ = {};
  barriers_ = {};
  arrived_twice_ = {};
  mbarriers_.clear();
  invalidated_.clear();
  launch_refused = {};
  mbarriers_initialised_ = 0;
  shared_.reset(launch.kernel->shared_bytes);
  tensor_.reset(spec_of(generation_).tensor_memory);

  int const count = launch.kernel->threads;
  for (int i = 0; i < count; ++i) {
    Thread& thread = this->thread(i);
    thread.started = false;
    thread.finished = false;
    thread.last_read = nullptr;
    thread.tests = 0;
    thread.steps = 0;
    thread.async.clear();
    thread.async.groups = 0;
    thread.bulk.clear();
    thread.tensor.clear();
    thread.mbarrier = nullptr;
    thread.agent = rank_ * count + i;
    thread.tries = false;
    thread.gave_up = false;
    thread.timed_out = {-1, 0};
  }
  warps_.resize(static_cast<std::size_t>(count / 32));
  ready_warps_ = 0;
  for (int w = 0; w < count / 32; ++w) {
    Warp& warp = this->warp(w);
    warp.index = w;
    warp.ready = 0;
    warp.exited = 0;
    warp.completes = 0;
    warp.barrier = -1;
    warp.cluster_arrivals = 0;
    warp.cluster_waits = 0;
    warp.waits_at_cluster = false;
    warp.met = 0;
    warp.meetings = 0;
    warp.crossed = {};
    warp.tensor_loads.clear();
    warp.tensor_stores.clear();
    set_ready(warp, kFullWarp);
  }
  warpgroups_.resize(static_cast<std::size_t>((count + 127) / 128));
  int const registers = launch.kernel->registers();
  registers_ = registers * count;
  free_registers_ = 0;
  for (Warpgroup& group : warpgroups_) {
    group.met = 0;
    group.arrived = 0;
    group.wgmma.clear();
    group.wgmma_history = {};
    group.registers = registers;
    group.registers_where = {};
    group.waits_for_registers = nullptr;
  }
  live_threads_ = count;
}

/// The thread has returned from the kernel.
void Cta::finish_thread(Thread& thread) {
  Warp& own = warp(thread.index / 32);
  own.ready &= ~(1u << thread.lane);
  own.exited |= 1u << thread.lane;
  if (own.ready == 0) {
    ready_warps_ &= ~(1u << own.index);
    if (ready_warps_ == 0) cluster_.set_idle(rank_);
  }
  --live_threads_;
  if (cluster_.aborting()) return;
  retire(thread.async, thread.async.copies.size());
  check_exit(own);
  if (own.exited == kFullWarp) cluster_.leave_barrier(own);
  if (live_threads_ == 0) {
    cluster_.in_flight().check_exit(*this);
    check_tensor_memory_freed();
    if (check_) observers().cta_exited(*this);
  }
}

void Cta::set_ready(Warp& warp, std::uint32_t lanes) {
  warp.ready |= lanes;
  ready_warps_ |= 1u << warp.index;
  cluster_.set_ready(rank_);
}

void Cta::set_ready(Thread& thread) { set_ready(warp(thread.index / 32), 1u << thread.lane); }

}  // namespace tegula::sim
