#include <memory>

#include "correct_kernels.hpp"
#include "run_kernel.hpp"
#include "tma_checks.hpp"
#include "tma_simulated_host.hpp"
#include "wgmma_data.hpp"
#include "word_kernels.hpp"

// The kernels that tests/sim has for each instruction.
namespace tegula::detail {
namespace {

/// A kernel that reads `input()` and writes words. Its input is made when it runs: a test's process
/// lists all kernels and runs one.
template <class Input>
void add(std::vector<CorrectKernel>& all, WordKernel const& kernel, Input input) {
  all.push_back({"instructions", kernel.name,
                 [run = kernel.run, input](sim::Options const& options) {
                   return outcome_of([&](Outcome& outcome) {
                     sim::Machine machine(options);
                     outcome.output = bytes_of(run(machine, input(), &outcome.report));
                   });
                 },
                 kernel.polls});
}

/// `check(host)` of tma_checks.hpp; the output is its verdict on what was moved.
template <class Check>
void add_tma(std::vector<CorrectKernel>& all, std::string const& name, Check check) {
  all.push_back({"instructions", name, [check](sim::Options const& options) {
                   return outcome_of([&](Outcome& outcome) {
                     tma_test::SimulatedHost host(options);
                     std::string const verdict = "what is wrong: " + check(host);
                     outcome.output.assign(verdict.begin(), verdict.end());
                     outcome.report = host.report;
                   });
                 }});
}

void add_tma(std::vector<CorrectKernel>& all) {
  using namespace tma_test;
  for (int const rank : {1, 3, 5}) {
    std::string const name = "tma rank " + std::to_string(rank);
    auto const load = [&](Case const& c, std::string const& where) {
      add_tma(all, name + ", load " + where, [c](auto& host) { return check_load(host, c); });
    };
    auto const store = [&](Case const& c, std::string const& where) {
      add_tma(all, name + ", store " + where, [c](auto& host) { return check_store(host, c); });
    };
    Case c = basic_case(rank, DType::bf16, TmaSwizzle::b128);
    load(c, "inside the tensor");
    store(c, "inside the tensor");
    c.coordinate[0] = -8;
    load(c, "across its beginning");
    c.map.extents[0] -= 5;  // a multiple of 16 bytes: stores clip at those
    c.coordinate[0] = static_cast<int>(c.map.extents[0]) - 24;
    load(c, "across its end");
    store(c, "across its end");
  }
  Case const c = basic_case(2, DType::f32, TmaSwizzle::b64);
  add_tma(all, "tma multicast to 3 of 4", [c](auto& host) {
    return check_loaded<tma_kernels::Multicast<4>>(host, c, 4, 0b1011, 3);
  });
  add_tma(all, "tma multicast in two clusters", [c](auto& host) {
    return check_loaded<tma_kernels::Multicast<4>>(host, c, 8, 0b1111, 1);
  });
  for (Case const& image : image_cases()) {
    if (image.map.rank == 4 && image.map.dtype == DType::f32)
      add_tma(all, "tma " + image.name, [image](auto& host) { return check_load(host, image); });
  }
  add_tma(all, "bulk copies", [](auto& host) { return check_bulk(host, 4096, 256, 1024); });
}

}  // namespace

void add_instructions(std::vector<CorrectKernel>& all) {
  for (auto const* kernels : {&all_instruction_kernels(), &all_vocabulary_kernels(),
                              &all_hopper_kernels(), &all_atomic_kernels(), &all_copy_kernels()}) {
    for (WordKernel const& kernel : *kernels)
      add(all, kernel, [&kernel] { return words(static_cast<std::size_t>(kernel.in_words)); });
  }
  for (WgmmaKernel const& kernel : all_wgmma_kernels())
    add(all, kernel, [&kernel] { return wild_input(kernel, 2); });
  add_tma(all);
}

}  // namespace tegula::detail
