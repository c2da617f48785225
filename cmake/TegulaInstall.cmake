# What `cmake --install` copies: headers, libraries, their package for CMake and for pkg-config, the
# tool and its pages.

include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tegula)
set(made ${CMAKE_CURRENT_BINARY_DIR}/install)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tegula DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tegula_layout tegula_kernels EXPORT tegulaHeaders)
install(EXPORT tegulaHeaders NAMESPACE tegula:: DESTINATION ${package_folder})

get_property(libraries GLOBAL PROPERTY TEGULA_PUBLIC_LIBRARIES)
if(libraries)
  install(TARGETS ${libraries} EXPORT tegulaLibraries ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tegulaLibraries NAMESPACE tegula:: DESTINATION ${package_folder})
endif()
# The C interface: in a set of its own, for it needs none of the others' packages.
if(TEGULA_TOOL)
  install(TARGETS tegula_c EXPORT tegulaC LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tegulaC NAMESPACE tegula:: DESTINATION ${package_folder})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tegulaConfig.cmake.in ${made}/tegulaConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${made}/tegulaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${made}/tegulaConfig.cmake ${made}/tegulaConfigVersion.cmake DESTINATION ${package_folder})

# The same package in the folder of the build, for projects that link against it without an
# installation (tegula_DIR is that folder).
export(EXPORT tegulaHeaders NAMESPACE tegula:: FILE ${PROJECT_BINARY_DIR}/tegulaHeaders.cmake)
if(libraries)
  export(EXPORT tegulaLibraries NAMESPACE tegula:: FILE ${PROJECT_BINARY_DIR}/tegulaLibraries.cmake)
endif()
if(TEGULA_TOOL)
  export(EXPORT tegulaC NAMESPACE tegula:: FILE ${PROJECT_BINARY_DIR}/tegulaC.cmake)
endif()
foreach(file tegulaConfig.cmake tegulaConfigVersion.cmake)
  configure_file(${made}/${file} ${PROJECT_BINARY_DIR}/${file} COPYONLY)
endforeach()

# pkg-config: tegula-layout is headers alone, tegula the libraries, tegula-c the C interface. The paths are relative to the
# file, so that the tree can be moved.
file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
list(TRANSFORM libraries PREPEND -l OUTPUT_VARIABLE link_words)
list(REVERSE link_words)  # what others need was defined before them
list(JOIN link_words " " link_words)
set(cuda_words "")
if(TEGULA_CUDA)
  set(cuda_words "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
set(pkg_config_files tegula-layout)
if(libraries)
  list(APPEND pkg_config_files tegula)
endif()
if(TEGULA_TOOL)
  list(APPEND pkg_config_files tegula-c)
endif()
foreach(file ${pkg_config_files})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${file}.pc.in ${made}/${file}.pc @ONLY)
  install(FILES ${made}/${file}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

# The C interface's library in the Python package alone (`cmake --install --component python`).
if(TEGULA_TOOL)
  install(FILES $<TARGET_FILE:tegula_c> DESTINATION tegula COMPONENT python EXCLUDE_FROM_ALL RENAME libtegula_c.so)
endif()

# The tool's man page and the completions of shells are made of what its --help says.
if(TEGULA_TOOL)
  set(pages ${made}/tegula.1 ${made}/tegula.bash ${made}/_tegula ${made}/tegula.fish)
  add_custom_command(OUTPUT ${pages}
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/tool_pages.py $<TARGET_FILE:tegula> ${made}
    DEPENDS tegula ${PROJECT_SOURCE_DIR}/scripts/tool_pages.py VERBATIM)
  add_custom_target(tegula_pages ALL DEPENDS ${pages})
  install(TARGETS tegula RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES ${made}/tegula.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${made}/tegula.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tegula)
  install(FILES ${made}/_tegula DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${made}/tegula.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
