# The packages that the simulated machine and what is built on it need. Without it (TEGULA_SIM is
# OFF) nothing is looked for.

if(NOT TEGULA_SIM MATCHES "^(ON|OFF|AUTO)$")
  message(FATAL_ERROR "TEGULA_SIM is '${TEGULA_SIM}': set it to ON, OFF or AUTO")
endif()

# Packages carried along to a machine that has none (`./run vendor-deps`): the last place that is
# looked in.
list(APPEND CMAKE_SYSTEM_PREFIX_PATH ${CMAKE_CURRENT_SOURCE_DIR}/.deps)
# Of Boost they are the first: the machine's own may lack Boost.Context, and the carried one
# is whole.
file(GLOB carried_boost ${CMAKE_CURRENT_SOURCE_DIR}/.deps/boost/lib/*/cmake/Boost-*)
if(carried_boost AND NOT Boost_DIR)
  set(Boost_DIR ${carried_boost} CACHE PATH "Boost's package configuration")
endif()

if(TEGULA_SIM)
  set(missing)
  set(packages Threads fmt "Boost COMPONENTS context" nlohmann_json)
  if(TEGULA_TOOL)
    list(APPEND packages CLI11)
  endif()
  foreach(package ${packages})
    string(REPLACE " " ";" arguments ${package})
    list(GET arguments 0 name)
    find_package(${arguments} QUIET)
    if(NOT ${name}_FOUND)
      list(APPEND missing ${name})
    endif()
  endforeach()
  if(missing)
    string(REPLACE "Boost" "Boost.Context" missing "${missing}")
    list(JOIN missing ", " missing)
    set(explained "the simulated machine and the device layer need packages that were not found: ${missing}. Install them \
(Debian, Ubuntu: libboost-context-dev libfmt-dev nlohmann-json3-dev libcli11-dev), or set CMAKE_PREFIX_PATH to where they are")
    if(TEGULA_SIM STREQUAL ON)
      message(FATAL_ERROR "tegula: ${explained}; -DTEGULA_SIM=OFF does without, and has tegula::layout and tegula::kernels alone")
    endif()
    message(STATUS "tegula: without tegula::sim and tegula::device: ${explained}")
    set(TEGULA_SIM OFF)
  endif()
endif()

if(NOT TEGULA_SIM)
  if(TEGULA_CUDA)
    message(FATAL_ERROR "tegula: TEGULA_CUDA needs TEGULA_SIM, whose device layer the CUDA back end belongs to")
  endif()
  foreach(part TOOL EXAMPLES TESTS BENCH)
    set(TEGULA_${part} OFF)
  endforeach()
elseif(TEGULA_TESTS AND NOT (TEGULA_TOOL AND TEGULA_EXAMPLES))
  message(FATAL_ERROR "tegula: TEGULA_TESTS needs TEGULA_TOOL and TEGULA_EXAMPLES: the tests run the command and the examples")
endif()
if(TEGULA_TOOL OR TEGULA_TESTS OR TEGULA_BENCH OR TEGULA_CUDA)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
endif()
