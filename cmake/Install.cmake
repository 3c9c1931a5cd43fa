# Install.cmake: what `cmake --install` puts where: library, headers, command line, CMake and pkg-config packages,
# models and documents. Everything is found relative to itself, so an installed tree may be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/graphrun)

# Components are the packages of cmake/Packages.cmake: library, tools, dev, cuda.
install(TARGETS graphrun EXPORT graphrunTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# What pyproject.toml takes for the Python package. By its SONAME, by which libgraphrun_cuda.so and auditwheel look for it.
install(FILES $<TARGET_FILE:graphrun> DESTINATION graphrun/lib RENAME libgraphrun.so.${PROJECT_VERSION_MAJOR}
  COMPONENT wheel EXCLUDE_FROM_ALL)
if(GRAPHRUN_CUDA_FOUND)
  install(FILES $<TARGET_FILE:graphrun_cuda> DESTINATION graphrun/lib COMPONENT wheel EXCLUDE_FROM_ALL)
endif()
install(TARGETS graphrun_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(DIRECTORY include/graphrun DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")

install(EXPORT graphrunTargets NAMESPACE graphrun:: DESTINATION ${package_dir} COMPONENT dev)
configure_package_config_file(cmake/graphrunConfig.cmake.in ${PROJECT_BINARY_DIR}/package/graphrunConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/graphrunConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/graphrunConfig.cmake
              ${PROJECT_BINARY_DIR}/package/graphrunConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT dev)

file(RELATIVE_PATH GRAPHRUN_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/graphrun.pc.in ${PROJECT_BINARY_DIR}/package/graphrun.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/graphrun.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# With their data, and what these ask to be told: authors and licences. Not what scripts/get-data fetched.
install(DIRECTORY models DESTINATION ${CMAKE_INSTALL_DATADIR}/graphrun COMPONENT tools FILES_MATCHING
  PATTERN "*.json" PATTERN "data/*.gz" PATTERN "data/README.md" PATTERN "mnist" EXCLUDE)
install(FILES examples/houses.cpp examples/xor.cpp examples/matmul_plugin.c
  DESTINATION ${CMAKE_INSTALL_DATADIR}/graphrun/examples COMPONENT dev)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools FILES_MATCHING
  PATTERN "*.md" PATTERN "pictures/*.png")
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)  # a .deb has it as `copyright`

# The page for man, and completion where each shell looks for it: printed by the command line that is installed.
set(pages ${PROJECT_BINARY_DIR}/pages)
add_custom_command(OUTPUT ${pages}/graphrun.1 ${pages}/graphrun ${pages}/_graphrun ${pages}/graphrun.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
  COMMAND graphrun_cli help --man > ${pages}/graphrun.1
  COMMAND graphrun_cli completion bash > ${pages}/graphrun
  COMMAND graphrun_cli completion zsh > ${pages}/_graphrun
  COMMAND graphrun_cli completion fish > ${pages}/graphrun.fish
  DEPENDS graphrun_cli VERBATIM)
add_custom_target(graphrun_pages ALL DEPENDS ${pages}/graphrun.1)
install(FILES ${pages}/graphrun.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
install(FILES ${pages}/graphrun DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT tools)
install(FILES ${pages}/_graphrun DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT tools)
install(FILES ${pages}/graphrun.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tools)
