// picture_file.h: output of --svg, --html and --csv: to the file of --output, else to stdout. A picture is written as
// SVG or PNG depending on the file extension; HTML and CSV allow any file name.
// Contract: the file is opened first, so that an invalid name fails before any work is done. Throws Error (kind input)
// for --output without one of these flags, an unknown extension, or a file that is also an input or is not writable.
#pragma once

#include <string_view>

#include "cli/command_line/arguments.h"
#include "cli/terminal/result_file.h"
#include "plot/drawing.h"

namespace graphrun::cli {

class PictureFile {
 public:
  PictureFile(const Arguments& arguments, const char* code);  // `code`: error code if the file is not writable
  void write(const plot::Drawing& drawing);
  void write(std::string_view text) { file_.write(text); }

 private:
  ResultFile file_;
  const bool is_png_;
};

}  // namespace graphrun::cli
