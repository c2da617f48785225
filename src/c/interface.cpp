// What is about the interface itself, and the command line.

#include "commands.hpp"
#include "guard.hpp"

int32_t tegula_c_version(void) { return TEGULA_C_VERSION; }
char const* tegula_version(void) { return TEGULA_VERSION; }
char const* tegula_last_error(void) { return tegula::c::last_sentence(); }
void tegula_free(char* text) { delete[] text; }

int32_t tegula_main(int32_t argc, char** argv) {
  return tegula::tool::run_command_line(argc, argv);
}
