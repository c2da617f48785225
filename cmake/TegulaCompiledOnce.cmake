# What is compiled once for many source files.
#
# What nearly every source file includes (the standard library, fmt, GoogleTest) is parsed once for
# all targets, and the sources of a target are compiled several at a time: their templates are
# instantiated once. A source file still includes what it names, and is a translation unit of its
# own: the build `plain`, which has neither, holds it to that (`./run nightly`).

option(TEGULA_UNITY "Compile several source files of a target at a time" ${PROJECT_IS_TOP_LEVEL})
option(TEGULA_PRECOMPILED_HEADERS "Parse the headers of the standard library, fmt and GoogleTest once" ${PROJECT_IS_TOP_LEVEL})

# ccache takes precompiled headers only where it is told that their macros and times do not matter.
# What the compiler does with its own memory does not either (tegula_compile_options).
if(TEGULA_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL TEGULA_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                  CCACHE_IGNOREOPTIONS=--param=ggc-* ${TEGULA_CCACHE})
endif()

# The sets of headers; TEGULA_PRECOMPILED names the one that the targets of a folder and of those
# below it take. All targets of a set have the same level of optimisation: with a precompiled header
# of another one g++ 12 refuses it, or crashes.
set(TEGULA_PRECOMPILED library)
set(TEGULA_LIBRARY_HEADERS <algorithm> <array> <atomic> <bit> <chrono> <cmath> <cstddef> <cstdint> <cstdio> <cstdlib> <cstring>
    <exception> <functional> <limits> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <stdexcept> <string>
    <string_view> <thread> <tuple> <type_traits> <unordered_map> <utility> <vector> <fmt/format.h>)
set(TEGULA_KERNEL_HEADERS ${TEGULA_LIBRARY_HEADERS})
set(TEGULA_TOOL_HEADERS ${TEGULA_LIBRARY_HEADERS} <nlohmann/json.hpp>)
set(TEGULA_TEST_HEADERS ${TEGULA_LIBRARY_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
set(TEGULA_COMPUTING_TEST_HEADERS ${TEGULA_TEST_HEADERS})
set(TEGULA_LIBRARY_PACKAGES fmt::fmt Threads::Threads)
set(TEGULA_KERNEL_PACKAGES ${TEGULA_LIBRARY_PACKAGES})
set(TEGULA_TOOL_PACKAGES ${TEGULA_LIBRARY_PACKAGES} nlohmann_json::nlohmann_json)
set(TEGULA_TEST_PACKAGES ${TEGULA_LIBRARY_PACKAGES} GTest::gtest GTest::gmock)
set(TEGULA_COMPUTING_TEST_PACKAGES ${TEGULA_TEST_PACKAGES})

# tegula_unite(TARGET): its sources are compiled eight at a time, but for those that have options or
# definitions of their own, or SKIP_UNITY_BUILD_INCLUSION.
function(tegula_unite target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${TEGULA_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# tegula_compile_together(TARGET sources...): these of its sources are compiled as one. What has been
# in no such list is compiled by itself. For a target whose files give the same names to things of
# their own: those of a list do not.
function(tegula_compile_together target)
  list(GET ARGN 0 group)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# tegula_compile_apart(TARGET...): each of their files is compiled by itself. They have names of their
# own for the same things.
function(tegula_compile_apart)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD OFF)
endfunction()

# tegula_precompile(TARGET): the target's sources are compiled with those headers. A target with
# compile options beside those that tegula_compile_options gives cannot share them.
function(tegula_precompile target)
  if(NOT TEGULA_PRECOMPILED_HEADERS)
    return()
  endif()
  string(TOUPPER ${TEGULA_PRECOMPILED} SET)
  set(headers tegula_${TEGULA_PRECOMPILED}_headers)
  if(NOT TARGET ${headers})
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/${headers}.cpp CONTENT "")
    add_library(${headers} OBJECT ${CMAKE_BINARY_DIR}/${headers}.cpp)
    target_link_libraries(${headers} PRIVATE ${TEGULA_${SET}_PACKAGES})
    tegula_compile_options(${headers})
    target_precompile_headers(${headers} PRIVATE ${TEGULA_${SET}_HEADERS})
    set_target_properties(${headers} PROPERTIES TEGULA_FLAGS "${CMAKE_CXX_FLAGS_RELEASE}")
  endif()
  get_target_property(flags ${headers} TEGULA_FLAGS)
  if(NOT flags STREQUAL CMAKE_CXX_FLAGS_RELEASE)
    message(FATAL_ERROR "${target} is compiled with '${CMAKE_CXX_FLAGS_RELEASE}', and the headers of the set "
                        "'${TEGULA_PRECOMPILED}' with '${flags}': set TEGULA_PRECOMPILED to another set")
  endif()
  target_link_libraries(${target} PRIVATE ${TEGULA_${SET}_PACKAGES})
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()
