#pragma once

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

/// Runs checks in child processes, for what a check can break for those after it: an error on a GPU
/// ends the process's context, and a kernel that never ends its process.
namespace tegula::isolated {

/// What is to be checked; `run` gives what is wrong, or nothing. It is only ever called in a
/// child process.
struct Check {
  std::string name;
  std::function<std::string()> run;
};

/// A check found that the process cannot be used by another, and says why.
struct broken_process : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Limits {
  std::chrono::milliseconds each{10'000};  ///< until a check's process is killed
  std::chrono::milliseconds all{60'000};   ///< after which no further check is begun
};

namespace detail {

inline constexpr char kEnd = 0x1e;  // ASCII's record separator: no verdict holds it
/// What the process says of itself before each verdict.
inline constexpr char kSound = '.', kBroken = '!';

inline void send(int pipe, std::string text) {
  text.push_back(kEnd);
  for (std::size_t sent = 0; sent < text.size();) {
    ssize_t const n = write(pipe, text.data() + sent, text.size() - sent);
    if (n < 0 && errno != EINTR) _exit(1);
    if (n > 0) sent += static_cast<std::size_t>(n);
  }
}

/// Sends the verdict of each check from `first` on; leaves after one that broke the process.
[[noreturn]] inline void child(std::vector<Check> const& checks, std::size_t first, int pipe) {
  for (std::size_t i = first; i < checks.size(); ++i) {
    std::string verdict;
    bool broken = false;
    try {
      verdict = checks[i].run();
    } catch (broken_process const& e) {
      verdict = e.what();
      broken = true;
    } catch (std::exception const& e) {
      verdict = e.what();
    }
    send(pipe, (broken ? kBroken : kSound) + verdict);
    if (broken) break;
  }
  _exit(0);
}

/// The next verdict from the pipe; false where the child left or `limit` passed without one.
inline bool receive(int pipe, std::chrono::milliseconds limit, std::string& verdict, bool& late) {
  auto const deadline = std::chrono::steady_clock::now() + limit;
  verdict.clear();
  late = false;
  for (;;) {
    auto const left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd watched{pipe, POLLIN, 0};
    int const ready = left.count() <= 0 ? 0 : poll(&watched, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      late = true;
      return false;
    }
    char byte = 0;
    ssize_t const n = read(pipe, &byte, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    if (byte == kEnd) return true;
    verdict.push_back(byte);
  }
}

inline std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return "its process ended by signal " + std::to_string(WTERMSIG(status));
  return "its process ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace detail

/// The verdict of every check, in order. A check whose process dies, hangs or is broken has that as
/// its verdict, and the next one begins in a fresh process. What a check needs once for a process
/// it makes itself: a fork must not inherit it (a CUDA context, for one), so the caller must not
/// have made it. Prints the name of each check before it runs.
inline std::vector<std::string> run(std::vector<Check> const& checks, Limits limits = {}) {
  auto const begin = std::chrono::steady_clock::now();
  std::vector<std::string> verdicts;
  while (verdicts.size() < checks.size()) {
    if (std::chrono::steady_clock::now() - begin > limits.all) {
      verdicts.resize(checks.size(), "did not run: the time for all was over");
      break;
    }
    std::fflush(nullptr);
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("pipe failed");
    pid_t const process = fork();
    if (process < 0) throw std::runtime_error("fork failed");
    if (process == 0) {
      close(ends[0]);
      detail::child(checks, verdicts.size(), ends[1]);
    }
    close(ends[1]);
    bool late = false, received = true;
    while (received && verdicts.size() < checks.size() &&
           std::chrono::steady_clock::now() - begin <= limits.all) {
      std::printf("[ CHECK    ] %s\n", checks[verdicts.size()].name.c_str());
      std::fflush(stdout);
      std::string verdict;
      received = detail::receive(ends[0], limits.each, verdict, late);
      if (!received) break;
      verdicts.push_back(verdict.substr(1));
      if (verdict[0] == detail::kBroken) break;
    }
    kill(process, SIGKILL);  // of no effect where it has ended
    close(ends[0]);
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    if (!received)
      verdicts.push_back(late ? "gave no answer in " + std::to_string(limits.each.count()) + " ms"
                              : detail::how_it_ended(status));
  }
  return verdicts;
}

}  // namespace tegula::isolated
