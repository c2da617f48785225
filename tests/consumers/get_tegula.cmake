# get_tegula(COMPONENT...): tegula by the way that TEGULA_FROM names: an installed `package` (found
# through CMAKE_PREFIX_PATH), one that was `built` in the folder tegula_DIR and not installed, a
# checkout at TEGULA_SOURCE as a `subdirectory`, or the same by FetchContent (`fetched`).
macro(get_tegula)
  if(TEGULA_FROM MATCHES "^(package|built)$")
    find_package(tegula 0.1 REQUIRED COMPONENTS ${ARGN})
  elseif(TEGULA_FROM STREQUAL subdirectory)
    add_subdirectory(${TEGULA_SOURCE} tegula EXCLUDE_FROM_ALL)
  elseif(TEGULA_FROM STREQUAL fetched)
    include(FetchContent)
    FetchContent_Declare(tegula SOURCE_DIR ${TEGULA_SOURCE})
    FetchContent_MakeAvailable(tegula)
  else()
    message(FATAL_ERROR "TEGULA_FROM is '${TEGULA_FROM}': set it to package, built, subdirectory or fetched")
  endif()
endmacro()
