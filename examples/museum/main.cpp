// The museum: `museum --list`, `museum NAME`, `museum --page`.
#include "../broken/program.hpp"
#include "museum.hpp"

int main(int argc, char** argv) {
  return tegula::broken::run_program(tegula::museum::gallery(), argc, argv);
}
