# Font.cmake: outlines of Liberation Sans for text in PNG pictures, written at build time by font_outlines.cpp.
# A program that draws the same bytes everywhere cannot depend on the fonts of the machine that it runs on, and a font is
# not part of this project's source. Liberation Sans has the widths of Arial, for which pictures in SVG are laid out.
# FreeType is used only here, by a program that runs while graphrun is built.
find_package(Freetype)
find_file(GRAPHRUN_FONT NAMES LiberationSans-Regular.ttf
  PATHS /usr/share/fonts PATH_SUFFIXES truetype/liberation truetype/liberation2 liberation-sans-fonts liberation-sans liberation
  DOC "TrueType font of text in PNG pictures")
if(NOT Freetype_FOUND OR NOT GRAPHRUN_FONT)
  message(FATAL_ERROR "FreeType or LiberationSans-Regular.ttf was not found (Debian and Ubuntu: apt-get install "
    "libfreetype-dev fonts-liberation). -DGRAPHRUN_FONT=FILE.ttf uses another TrueType font")
endif()
add_executable(graphrun_font_outlines ${CMAKE_CURRENT_LIST_DIR}/font_outlines.cpp)
target_compile_features(graphrun_font_outlines PRIVATE cxx_std_20)
target_link_libraries(graphrun_font_outlines PRIVATE Freetype::Freetype)
set(GRAPHRUN_FONT_OUTLINES ${CMAKE_BINARY_DIR}/generated/font_outlines.cpp)
add_custom_command(OUTPUT ${GRAPHRUN_FONT_OUTLINES} VERBATIM
  COMMAND graphrun_font_outlines ${GRAPHRUN_FONT} ${GRAPHRUN_FONT_OUTLINES}
  DEPENDS graphrun_font_outlines ${GRAPHRUN_FONT})
