# Install.cmake: what `cmake --install` puts where: library, headers, command line, CMake and pkg-config packages,
# models and documents. Everything is found relative to itself, so an installed tree may be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/graphrun)

install(TARGETS graphrun EXPORT graphrunTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS graphrun_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/graphrun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

install(EXPORT graphrunTargets NAMESPACE graphrun:: DESTINATION ${package_dir})
configure_package_config_file(cmake/graphrunConfig.cmake.in ${PROJECT_BINARY_DIR}/package/graphrunConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/graphrunConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/graphrunConfig.cmake
              ${PROJECT_BINARY_DIR}/package/graphrunConfigVersion.cmake
  DESTINATION ${package_dir})

file(RELATIVE_PATH GRAPHRUN_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/graphrun.pc.in ${PROJECT_BINARY_DIR}/package/graphrun.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/graphrun.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# With their data, and what these ask to be told: authors and licences. Not what scripts/get-data fetched.
install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DATADIR}/graphrun FILES_MATCHING
  PATTERN "*.json" PATTERN "data/*.gz" PATTERN "data/README.md" PATTERN "mnist" EXCLUDE)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
