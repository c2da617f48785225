#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <cstddef>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#define TEGULA_SIM_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define TEGULA_SIM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEGULA_SIM_ASAN 1
#elif __has_feature(thread_sanitizer)
#define TEGULA_SIM_TSAN 1
#endif
#endif
#ifndef TEGULA_SIM_ASAN
#define TEGULA_SIM_ASAN 0
#endif
#ifndef TEGULA_SIM_TSAN
#define TEGULA_SIM_TSAN 0
#endif
#if TEGULA_SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if TEGULA_SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace tegula::sim {

/// Memory for the stack of one fiber, with a guard below it: memory that may not be accessed.
class FiberStack {
 public:
  /// `colour` shifts the top of the stack by a multiple of a cache line, so that the hot frames
  /// of the fibers, which run the same code, do not all fall into the same sets of the
  /// first-level cache.
  FiberStack(std::size_t bytes, int colour);
  ~FiberStack();
  FiberStack(FiberStack const&) = delete;
  FiberStack& operator=(FiberStack const&) = delete;

  void* bottom() const { return bottom_; }
  std::size_t bytes() const { return bytes_; }
  void* top() const { return static_cast<char*>(bottom_) + bytes_ - shift_; }
  /// Whether it holds what lies at the address.
  bool holds(void const* address) const { return address >= bottom_ && address < top(); }
  /// Whether the address is in its guard.
  bool guards(void const* address) const { return address >= mapping_ && address < bottom_; }
  /// The part of it that has ever been touched, in whole pages.
  std::size_t touched() const;

 private:
  void* mapping_;
  std::size_t mapping_bytes_;
  void* bottom_;
  std::size_t bytes_;
  std::size_t shift_;
};

/// A place of execution that another one can switch to: a fiber, or the host thread that
/// started it.
struct Context {
  boost::context::fiber suspended;  ///< empty while it runs
#if TEGULA_SIM_ASAN
  void* fake_stack = nullptr;
  void const* bottom = nullptr;
  std::size_t bytes = 0;
#endif
#if TEGULA_SIM_TSAN
  Context() = default;
  ~Context() {
    if (created) __tsan_destroy_fiber(sanitizer_fiber);
  }
  Context(Context const&) = delete;
  Context& operator=(Context const&) = delete;

  void* sanitizer_fiber = nullptr;  ///< the host's thread's own, or one that was created
  bool created = false;
  bool ended = false;
#endif
};

/// Switches between contexts of one host thread.
class Switcher {
 public:
  /// Suspends `self`, which is running, and continues `target`; returns when something switches
  /// to `self`.
  void switch_to(Context& self, Context& target) {
    left_ = &self;
#if TEGULA_SIM_ASAN
    __sanitizer_start_switch_fiber(&self.fake_stack, target.bottom, target.bytes);
#endif
#if TEGULA_SIM_TSAN
    self.sanitizer_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(target.sanitizer_fiber, 0);
#endif
    boost::context::fiber from = std::move(target.suspended).resume();
#if TEGULA_SIM_ASAN
    __sanitizer_finish_switch_fiber(self.fake_stack, &left_->bottom, &left_->bytes);
#endif
    keep(std::move(from));
  }

  /// Makes a context that, when first switched to, calls `body()`. When that returns, whoever
  /// switched to it last goes on, and the context is empty. It must have come to that end before it
  /// is destroyed.
  template <class Body> void create(Context& context, FiberStack& stack, Body body) {
    boost::context::stack_context sctx;
    sctx.sp = stack.top();
    sctx.size = static_cast<std::size_t>(static_cast<char*>(stack.top()) -
                                         static_cast<char*>(stack.bottom()));
#if TEGULA_SIM_ASAN
    context.bottom = stack.bottom();
    context.bytes = stack.bytes();
#endif
#if TEGULA_SIM_TSAN
    context.sanitizer_fiber = __tsan_create_fiber(0);
    context.created = true;
#endif
    context.suspended = boost::context::fiber(
        std::allocator_arg, boost::context::preallocated(sctx.sp, sctx.size, sctx), KeepStack{},
        [this, body, &context](boost::context::fiber&& from) -> boost::context::fiber {
#if TEGULA_SIM_ASAN
          __sanitizer_finish_switch_fiber(nullptr, &left_->bottom, &left_->bytes);
#endif
          left_->suspended = std::move(from);
          body();
#if TEGULA_SIM_TSAN
          // What the sanitizer knows of a stack's calls is right as long as both sides of a switch
          // return from it. So the last one is a switch like the others, from which nothing
          // returns here.
          context.ended = true;
          switch_to(context, *left_);
#endif
          boost::context::fiber next = std::move(left_->suspended);
#if TEGULA_SIM_ASAN
          __sanitizer_start_switch_fiber(nullptr, left_->bottom, left_->bytes);
#endif
          left_ = &context;
          return next;
        });
  }

 private:
  /// The stack outlives its fiber and is freed by its owner.
  struct KeepStack {
    using traits_type = boost::context::stack_traits;
    boost::context::stack_context allocate() { return {}; }
    void deallocate(boost::context::stack_context&) noexcept {}
  };

  /// Keeps where the one that switched last is to go on.
  void keep(boost::context::fiber&& from) {
#if TEGULA_SIM_TSAN
    if (left_->ended) {
      // whose destructor would go on there
      static_cast<void>(new boost::context::fiber(std::move(from)));
      return;
    }
#endif
    left_->suspended = std::move(from);
  }

  Context* left_ = nullptr;  ///< who switched last
};

}  // namespace tegula::sim
