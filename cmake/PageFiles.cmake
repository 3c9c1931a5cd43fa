# PageFiles.cmake: the files of the studio's page as a table in C++, kPageFiles (src/studio/page.h).
# cmake -DFOLDER=<src/studio/page> -DFILES="index.html page.js" -DOUTPUT=<file> -P PageFiles.cmake. They may hold anything
# but )page", which ends the literal.
separate_arguments(files UNIX_COMMAND "${FILES}")
set(rows "")
foreach(file IN LISTS files)
  file(READ "${FOLDER}/${file}" text)
  string(APPEND rows "    {\"${file}\", R\"page(${text})page\"},\n")
endforeach()
file(WRITE "${OUTPUT}"
"#include \"studio/page.h\"

namespace {
constexpr graphrun::studio::PageFile kTable[] = {
${rows}};
}
const std::span<const graphrun::studio::PageFile> graphrun::studio::kPageFiles{kTable};
")
