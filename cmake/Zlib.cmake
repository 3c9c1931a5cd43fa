# Zlib.cmake: zlib becomes part of what we build, as fmt does, so that an installed graphrun needs no libz.so.
# GRAPHRUN_SYSTEM_ZLIB links to the system's library instead, as the packages of a distribution must.
option(GRAPHRUN_SYSTEM_ZLIB "Link to the system's libz.so, as packages of a distribution do" OFF)
if(NOT GRAPHRUN_SYSTEM_ZLIB)
  set(ZLIB_USE_STATIC_LIBS ON)
endif()
find_package(ZLIB)
if(NOT ZLIB_FOUND)
  message(FATAL_ERROR "zlib was not found. Debian and Ubuntu: apt-get install zlib1g-dev. "
    "-DGRAPHRUN_SYSTEM_ZLIB=ON links to libz.so where there is no libz.a")
endif()
