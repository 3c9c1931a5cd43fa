# Zlib.cmake: ZLIB::ZLIB. zlib becomes part of what we build, as fmt does, so that an installed graphrun needs no libz.so.
# GRAPHRUN_SYSTEM_ZLIB links to the system's library instead, as the packages of a distribution must; a project that
# fetches this one and has found zlib before keeps its own. The archive has a variable of its own: find_package(ZLIB) would
# stay with the library it found first.
option(GRAPHRUN_SYSTEM_ZLIB "Link to the system's libz.so, as packages of a distribution do" OFF)
if(TARGET ZLIB::ZLIB)
  return()
endif()
if(GRAPHRUN_SYSTEM_ZLIB)
  find_package(ZLIB REQUIRED)
  return()
endif()
find_library(GRAPHRUN_ZLIB_ARCHIVE NAMES libz.a)
find_path(GRAPHRUN_ZLIB_INCLUDE_DIR NAMES zlib.h)
if(NOT GRAPHRUN_ZLIB_ARCHIVE OR NOT GRAPHRUN_ZLIB_INCLUDE_DIR)
  message(FATAL_ERROR "libz.a or zlib.h was not found (Debian and Ubuntu: apt-get install zlib1g-dev). "
    "-DGRAPHRUN_SYSTEM_ZLIB=ON links to the system's libz.so where there is no archive")
endif()
add_library(ZLIB::ZLIB STATIC IMPORTED GLOBAL)
set_target_properties(ZLIB::ZLIB PROPERTIES IMPORTED_LOCATION ${GRAPHRUN_ZLIB_ARCHIVE}
  INTERFACE_INCLUDE_DIRECTORIES ${GRAPHRUN_ZLIB_INCLUDE_DIR})
