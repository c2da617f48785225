#include "machine/stack_overflow.hpp"

#include <unistd.h>

#include <cstring>
#include <mutex>

#include "machine/cluster.hpp"
#include "machine/current_cta.hpp"

namespace tegula::sim {

namespace {

constexpr std::size_t kHandlerStackBytes = 64 * 1024;

// The handler is the process's, and installed while any host thread runs CTAs.
std::mutex mutex;
int users = 0;
struct sigaction before;

void on_fault(int signal, siginfo_t* info, void*) {
  char text[600];
  Cta const* const cta = running_cta();
  std::size_t const length =
      cta != nullptr ? cta->cluster().describe_overflow(info->si_addr, text, sizeof text) : 0;
  if (length != 0 && write(STDERR_FILENO, text, length) < 0) {
    // The fault itself is all that can still be said.
  }
  sigaction(signal, &before,
            nullptr);  // the access is repeated, and ends as it would have without this handler
}

}  // namespace

StackOverflowReport::StackOverflowReport() : memory_(std::make_unique<char[]>(kHandlerStackBytes)) {
  stack_t stack = {};
  stack.ss_sp = memory_.get();
  stack.ss_size = kHandlerStackBytes;
  sigaltstack(&stack, &before_);
  std::lock_guard const lock(mutex);
  if (users++ > 0) return;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
}

StackOverflowReport::~StackOverflowReport() {
  {
    std::lock_guard const lock(mutex);
    if (--users == 0) sigaction(SIGSEGV, &before, nullptr);
  }
  sigaltstack(&before_, nullptr);
}

}  // namespace tegula::sim
