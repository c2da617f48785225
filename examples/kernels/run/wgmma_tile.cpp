#include "wgmma_tile.hpp"

#include "support/gemm_problem.hpp"
#include "support/simulated.hpp"

using namespace tegula::examples;

int main() { return test_on_simulated_machine<GemmProblem, WgmmaTile, GemmShape>({{64, 128, 64}}); }
