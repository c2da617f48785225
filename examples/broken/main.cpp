// The gallery of broken kernels: `broken --list`, `broken NAME`, `broken --all`.
#include "program.hpp"

int main(int argc, char** argv) {
  return tegula::broken::run_program(tegula::broken::gallery(), argc, argv);
}
