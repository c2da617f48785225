#pragma once

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "schedules.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

/// The examples on the simulated machine, under the checker.
namespace tegula::examples {

/// A simulated GPU, as the problems want one.
class SimulatedGpu {
 public:
  explicit SimulatedGpu(sim::Options const& options) : machine_(options) {}

  template <class T> T* upload(std::vector<T> const& data, char const* name) {
    T* const result = static_cast<T*>(machine_.allocate(data.size() * sizeof(T), name));
    machine_.upload(result, data.data(), data.size() * sizeof(T));
    return result;
  }
  template <class T> std::vector<T> download(T const* data, std::size_t count) const {
    std::vector<T> result(count);
    machine_.download(result.data(), data, count * sizeof(T));
    return result;
  }
  TensorMap encode(TensorMapDescription const& description) const {
    return sim::encode(description);
  }
  template <class Kernel> void launch(Dim3 grid, typename Kernel::Params const& params) {
    report_ = sim::launch<Kernel>(machine_, grid, params);
  }
  /// Of the last launch. A finding throws.
  sim::Report const& report() const { return report_; }

 private:
  sim::Machine machine_;
  sim::Report report_;
};

/// Runs each problem at every schedule of the machine, the data as random as the schedule, and
/// holds its results to float64; prints the last report. Returns what main() is to return.
template <template <class, class> class Problem, class Kernel, class Shape>
int test_on_simulated_machine(std::vector<Shape> const& shapes) try {
  double worst = 0;
  int runs = 0;
  std::string text;
  for (sim::Options const& schedule : every_schedule(2)) {
    for (Shape const& shape : shapes) {
      SimulatedGpu gpu(schedule);
      Problem<Kernel, SimulatedGpu> problem(gpu, shape, schedule.seed);
      problem.launch();
      worst = std::max(worst, problem.check(1 << 20));
      text = gpu.report().text();
      ++runs;
    }
  }
  std::printf("%s\n%d runs, largest error %.3f of its bound\n", text.c_str(), runs, worst);
  return 0;
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

}  // namespace tegula::examples
