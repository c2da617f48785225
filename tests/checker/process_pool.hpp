#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tegula::mutants {

/// Runs jobs in processes of their own, so many at a time: a mutant may end or hang its process. A
/// job's result is JSON, an object: what the job says, or, where its process ended without a word,
/// that it did ("crash", "hang"), and how many seconds it took.
class ProcessPool {
 public:
  explicit ProcessPool(unsigned processes) : processes_(processes) {}

  /// `work(job)` in a process for each of `count` jobs that `wanted(job)` wants when its turn has
  /// come; `done(job, result)` here, in any order.
  template <class Wanted, class Work, class Done>
  void run(std::size_t count, Wanted wanted, Work work, Done done) {
    std::size_t next = 0;
    while (next < count || !running_.empty()) {
      for (; next < count && running_.size() < processes_; ++next)
        if (wanted(next)) start(next, work);
      if (!running_.empty()) wait(done);
    }
  }

 private:
  /// Of processor time, that a job may take: else the mutant hangs.
  static constexpr rlim_t kLongestSeconds = 20;
  /// At all: longer where the machine waits for itself.
  static constexpr auto kLongest = std::chrono::minutes(10);

  using Clock = std::chrono::steady_clock;
  struct Process {
    pid_t id;
    int pipe;
    std::size_t job;
    Clock::time_point began;
    std::string text;
    bool killed = false;
  };

  template <class Work> void start(std::size_t job, Work& work) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
    pid_t const process = fork();
    if (process < 0) throw std::runtime_error("fork failed");
    if (process == 0) {
      close(ends[0]);
      rlimit const limit{kLongestSeconds, kLongestSeconds};
      setrlimit(RLIMIT_CPU, &limit);
      std::string const text =
          work(job).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      for (std::size_t at = 0; at < text.size();) {
        ssize_t const written = write(ends[1], text.data() + at, text.size() - at);
        if (written <= 0) _exit(1);
        at += static_cast<std::size_t>(written);
      }
      _exit(0);
    }
    close(ends[1]);
    running_.push_back({process, ends[0], job, Clock::now(), {}});
  }

  template <class Done> void wait(Done& done) {
    std::vector<pollfd> polled;
    for (Process const& p : running_) polled.push_back({p.pipe, POLLIN, 0});
    poll(polled.data(), polled.size(), 200);
    for (std::size_t i = running_.size(); i-- > 0;) {
      Process& p = running_[i];
      if (!p.killed && Clock::now() - p.began > kLongest) {
        p.killed = true;
        kill(p.id, SIGKILL);
      }
      if ((polled[i].revents & (POLLIN | POLLHUP)) == 0) continue;
      char buffer[4096];
      ssize_t const got = read(p.pipe, buffer, sizeof buffer);
      if (got > 0) {
        p.text.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      close(p.pipe);
      int status = 0;
      waitpid(p.id, &status, 0);
      nlohmann::json result = nlohmann::json::parse(p.text, nullptr, false);
      if (result.is_discarded()) {
        bool const hung =
            p.killed ||
            (WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL));
        result = {{"result", hung ? "hang" : "crash"},
                  {"found", nlohmann::json::array()},
                  {"wrong", true}};
      }
      result["seconds"] = std::chrono::duration<double>(Clock::now() - p.began).count();
      std::size_t const job = p.job;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      done(job, std::move(result));
    }
  }

  unsigned processes_;
  std::vector<Process> running_;
};

}  // namespace tegula::mutants
