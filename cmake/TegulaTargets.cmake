# How every target of the project is compiled, said once.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# No NDEBUG in any build type: a check that can be compiled out is not one.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")

find_program(TEGULA_CCACHE ccache)
if(TEGULA_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TEGULA_CCACHE})
endif()

include(TegulaCuda)
include(TegulaCompiledOnce)

# GNU ld takes two to five times as long as these. A program is linked once and run once.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=lld TEGULA_LINKS_BY_LLD)
if(TEGULA_LINKS_BY_LLD)
  set(TEGULA_LINKER -fuse-ld=lld)
else()
  check_linker_flag(CXX -fuse-ld=gold TEGULA_LINKS_BY_GOLD)
  if(TEGULA_LINKS_BY_GOLD)
    set(TEGULA_LINKER -fuse-ld=gold)
  endif()
endif()

# tegula_link_program(TARGET): an executable is linked by the fastest linker there is.
function(tegula_link_program target)
  target_link_options(${target} PRIVATE $<$<LINK_LANGUAGE:CXX>:${TEGULA_LINKER}>)
endfunction()

# Warnings are errors. Floating-point contraction is off: a fused multiply-add is written as fma()
# by name, so that the source means the same arithmetic on every machine.
function(tegula_compile_options target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wno-unknown-pragmas -Wno-missing-field-initializers
                                  -ffp-contract=off $<$<BOOL:${TEGULA_WARNINGS_AS_ERRORS}>:-Werror>>)
  # Below 600 MB g++ collects no garbage, which in large units takes a tenth of its time. Nothing
  # that it compiles to depends on it.
  target_compile_options(${target} PRIVATE
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:--param=ggc-min-heapsize=600000>)
  # All code is position-independent in the same way, so that all targets can share
  # precompiled headers.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fPIC> $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fPIC>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
  if(TEGULA_SANITIZE)
    target_compile_options(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=address,undefined -fno-omit-frame-pointer>)
    target_link_options(${target} PRIVATE -fsanitize=address,undefined)
  endif()
  if(TEGULA_SANITIZE_THREADS)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=thread -fno-omit-frame-pointer>)
    target_link_options(${target} PRIVATE -fsanitize=thread)
  endif()
  tegula_cuda_options(${target})
endfunction()

# tegula_library(NAME sources... [LINK targets...] [INTERNAL] [OWN_OPTIONS]): a static library.
# tegula_X is tegula::X to other projects, here and where it is installed, unless it is INTERNAL.
# With OWN_OPTIONS it has compile options beside those that all targets have.
function(tegula_library name)
  cmake_parse_arguments(ARG "INTERNAL;OWN_OPTIONS" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC tegula_kernels ${ARG_LINK})
  tegula_compile_options(${name})
  if(NOT ARG_OWN_OPTIONS)
    tegula_unite(${name})
    tegula_precompile(${name})
  endif()
  if(name MATCHES "^tegula_(.*)$" AND NOT ARG_INTERNAL)
    set(public_name ${CMAKE_MATCH_1})
    add_library(tegula::${public_name} ALIAS ${name})
    set_target_properties(${name} PROPERTIES EXPORT_NAME ${public_name})
    set_property(GLOBAL APPEND PROPERTY TEGULA_PUBLIC_LIBRARIES ${name})
  endif()
endfunction()

# tegula_executable(NAME sources... [LINK targets...])
function(tegula_executable name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tegula_kernels ${ARG_LINK})
  tegula_compile_options(${name})
  tegula_link_program(${name})
  tegula_unite(${name})
  tegula_precompile(${name})
endfunction()

# tegula_only_in_whole_builds(NAME...): a build of representative configurations, which is a quick
# one, leaves these targets out unless it is asked for them.
function(tegula_only_in_whole_builds)
  if(TEGULA_CONFIGURATIONS STREQUAL representative)
    set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endfunction()

# tegula_test(NAME sources... [LINK targets...] [LABELS labels...] [TIMEOUT seconds, of a test;
# 900]): a GoogleTest (and RapidCheck) executable; each of its test cases is a CTest test of its
# own, so that a failure is named and cases run side by side. Label `gpu`: needs a GPU.
function(tegula_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LINK;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 900)
  endif()
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tegula_kernels ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main
                                        Threads::Threads)
  tegula_compile_options(${name})
  tegula_link_program(${name})
  tegula_unite(${name})
  tegula_precompile(${name})
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 TEST_PREFIX ${name}.
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
endfunction()

# tegula_script_test(NAME script arguments... [LABELS labels...]): a Python script of scripts/ that
# exits 0 when it is content.
function(tegula_script_test name script)
  cmake_parse_arguments(ARG "" "" "LABELS" ${ARGN})
  add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/${script} ${ARG_UNPARSED_ARGUMENTS}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 LABELS "${ARG_LABELS}")
endfunction()

# tegula_benchmark(NAME sources... [LINK targets...]): an executable in <build>/benchmarks, a Google
# Benchmark program or one that prints JSON lines {"benchmark", "case", "value", "unit"}; `./run
# bench` runs them all (scripts/host_bench.py).
function(tegula_benchmark name)
  tegula_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/benchmarks)
endfunction()
