# How every target of the project is compiled, said once.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)

# Warnings are errors. Floating-point contraction is off: a fused multiply-add is written as fma() by name, so that the
# source means the same arithmetic on every machine.
function(tegula_compile_options target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Werror -Wno-unknown-pragmas -ffp-contract=off>)
  if(TEGULA_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-omit-frame-pointer>)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
endfunction()

# tegula_library(NAME sources... [LINK targets...])
function(tegula_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC tegula_headers ${ARG_LINK})
  tegula_compile_options(${name})
endfunction()

# tegula_executable(NAME sources... [LINK targets...])
function(tegula_executable name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tegula_headers ${ARG_LINK})
  tegula_compile_options(${name})
endfunction()

# tegula_test(NAME sources... [LINK targets...]): a GoogleTest (and RapidCheck) executable, registered with CTest as one test.
function(tegula_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tegula_headers ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main Threads::Threads)
  tegula_compile_options(${name})
  add_test(NAME ${name} COMMAND ${name})
endfunction()
