# Fmt.cmake: fmt becomes part of what we build, so that programs that use it need no libfmt.so at run time.
# graphrun_fmt stands in for fmt::fmt. Distributions ship fmt's headers and a shared library, and seldom an archive that
# may go into a shared one. Of fmt 9 the code is compiled once, from its headers (fmt.cpp), which then are read as with
# the shared library; of other versions with every file that includes it, which takes three seconds more for each.
add_library(graphrun_fmt STATIC EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/fmt.cpp)
target_include_directories(graphrun_fmt PUBLIC $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
if(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  target_compile_definitions(graphrun_fmt PUBLIC FMT_SHARED)
else()
  target_compile_definitions(graphrun_fmt PUBLIC FMT_HEADER_ONLY=1)
endif()
