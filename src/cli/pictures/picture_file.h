// picture_file.h: where the picture that --svg asks for goes: to the file of --output, as SVG or PNG, or to stdout; and
// so for the texts of --html and --csv, whatever the file is called.
// Contract: opened before anything is read or planned, so that a name that cannot be written costs nothing. Throws
// Error (kind input): --output without one of them, another ending, a file that is read or cannot be written.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/command_line/arguments.h"
#include "graphrun/output_file.h"
#include "plot/drawing.h"

namespace graphrun::cli {

class PictureFile {
 public:
  PictureFile(const Arguments& arguments, const char* code);  // `code`: of the Error where it cannot be written
  void write(const plot::Drawing& drawing);
  void write(std::string_view text);

 private:
  std::optional<OutputFile> file_;  // nothing: stdout
  bool is_png_ = false;
};

}  // namespace graphrun::cli
