#include "commands.hpp"

int main(int argc, char** argv) { return tegula::tool::run_command_line(argc, argv); }
