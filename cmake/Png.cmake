# Png.cmake: graphrun_png. libpng is opened when the first PNG file is read, so only its header is needed here. Debian's
# libpng.a does not fit into a shared library, and an installed graphrun must not need libpng.so. Without the header,
# graphrun rejects PNG files.
add_library(graphrun_png INTERFACE)
option(GRAPHRUN_PNG "Read folders of PNG files, if png.h is found" ON)
find_path(GRAPHRUN_PNG_INCLUDE_DIR NAMES png.h)
if(GRAPHRUN_PNG AND GRAPHRUN_PNG_INCLUDE_DIR)
  target_include_directories(graphrun_png SYSTEM INTERFACE ${GRAPHRUN_PNG_INCLUDE_DIR})
  target_compile_definitions(graphrun_png INTERFACE GRAPHRUN_PNG)
elseif(GRAPHRUN_PNG)
  message(STATUS "png.h was not found (Debian and Ubuntu: apt-get install libpng-dev): this build reads no PNG files")
endif()
