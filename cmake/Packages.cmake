# Packages.cmake: what CPack makes of an installed tree: a tarball of everything, and .deb files for each component
# (scripts/package makes both). The same sources and SOURCE_DATE_EPOCH give the same bytes.
set(CPACK_PACKAGE_NAME graphrun)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "graphrun developers")
# Whoever makes the packages answers for them: DEBFULLNAME and DEBEMAIL are where Debian's own tools look.
set(maintainer "graphrun developers <graphrun@example.org>")
if(DEFINED ENV{DEBEMAIL})
  set(maintainer "$ENV{DEBEMAIL}")
  if(NOT maintainer MATCHES "<" AND DEFINED ENV{DEBFULLNAME})
    set(maintainer "$ENV{DEBFULLNAME} <${maintainer}>")
  endif()
endif()
set(GRAPHRUN_MAINTAINER "${maintainer}" CACHE STRING "Whom .deb packages name: a name and <an address>")
if(NOT GRAPHRUN_MAINTAINER MATCHES "^[^<>]+ <[^<>@ ]+@[^<>@ ]+>$")
  message(FATAL_ERROR "GRAPHRUN_MAINTAINER must be a name and an address, 'A Name <a.name@host>', got "
    "'${GRAPHRUN_MAINTAINER}' (by default from DEBFULLNAME and DEBEMAIL)")
endif()
set(CPACK_PACKAGE_CONTACT "${GRAPHRUN_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "computation-graph runtime that trains neural networks")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 1)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packaging/prepare.cmake)

# The tarball is one tree.
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" machine)
set(CPACK_PACKAGE_FILE_NAME graphrun-${PROJECT_VERSION}-${machine})

# .deb: library, tools, dev and, where it was built, cuda.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(library libgraphrun${PROJECT_VERSION_MAJOR})
set(own_version "(= ${PROJECT_VERSION}-1)")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS libpng16-16)  # opened by name, for PNG files
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/packaging/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Trains neural networks and other models that can be written as a
computation graph. All memory is planned before a run starts.

This package has the shared library, which offers C++ and C.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME graphrun)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${library} ${own_version}")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Trains neural networks and other models that can be written as a
computation graph. All memory is planned before a run starts.

This package has the command line, its manual page and completion,
documents and example models with their data.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libgraphrun-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${library} ${own_version}")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Trains neural networks and other models that can be written as a
computation graph. All memory is planned before a run starts.

This package has the headers for C++ and C, and the packages for CMake
and pkg-config.")

set(CPACK_DEBIAN_CUDA_PACKAGE_NAME libgraphrun-cuda)
set(CPACK_DEBIAN_CUDA_PACKAGE_SECTION contrib/libs)
set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${library} ${own_version}, libc6, libstdc++6")
set(CPACK_COMPONENT_CUDA_DESCRIPTION "Trains neural networks and other models that can be written as a
computation graph. All memory is planned before a run starts.

This package has the executor cuda. It opens the driver and, where they
are used, NVRTC, nvJitLink and cuBLAS of the CUDA toolkit at run time.")

# What a .deb has to have beside the installed files; the tarball has LICENSE instead.
option(GRAPHRUN_DEBIAN_DOCS "Install copyright and changelog for each component, as a .deb has them" OFF)
if(GRAPHRUN_DEBIAN_DOCS)
  set(components library tools dev)
  if(TARGET graphrun_cuda)
    list(APPEND components cuda)
  endif()
  foreach(component IN LISTS components)
    string(TOUPPER ${component} COMPONENT)
    set(doc ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME})
    install(FILES cmake/packaging/copyright DESTINATION ${doc} COMPONENT ${component})
    install(FILES ${PROJECT_BINARY_DIR}/package/changelog.Debian DESTINATION ${doc} COMPONENT ${component})
    set(overrides cmake/packaging/lintian-overrides)
    if(component MATCHES "^(library|cuda)$")
      set(overrides ${overrides}-${component})
    endif()
    install(FILES ${overrides} DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides COMPONENT ${component}
      RENAME ${CPACK_DEBIAN_${COMPONENT}_PACKAGE_NAME})
  endforeach()
  string(TIMESTAMP GRAPHRUN_CHANGELOG_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, if that is set
  configure_file(cmake/packaging/changelog.in ${PROJECT_BINARY_DIR}/package/changelog.Debian @ONLY)
  set(CPACK_COMPONENTS_ALL ${components})
endif()
include(CPack)
