#include "cli/pictures/picture_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/terminal/terminal.h"
#include "graphrun/error.h"
#include "plot/render.h"

namespace graphrun::cli {

PictureFile::PictureFile(const Arguments& arguments, const char* code) {
  const std::string& path = arguments.output;
  if (path.empty()) return;
  if (!arguments.svg && !arguments.csv && !arguments.html)
    throw Error(ErrorKind::input, "usage.flags",
                arguments.verb == "plan" ? "--output goes with --svg, --csv, --html or --buffers"
                                         : "--output goes with --svg, which draws a picture");
  const std::string extension = std::filesystem::path(path).extension().string();
  is_png_ = extension == ".png";
  if (arguments.svg && extension != ".svg" && !is_png_)
    throw Error(ErrorKind::input, "plot.format",
                fmt::format("'{}' has a format that {} cannot draw", path, arguments.verb),
                "the name ends in .svg or .png");
  file_.emplace(path, code);
  if (file_->is(arguments.model))
    throw Error(ErrorKind::input, "output.input", fmt::format("--output '{}' is a file that is read", path),
                "an output cannot replace a file that the run reads or writes elsewhere");
}

void PictureFile::write(const plot::Drawing& drawing) {
  write(is_png_ ? plot::as_png(drawing) : plot::as_svg(drawing));
}

void PictureFile::write(std::string_view text) {
  if (!file_) return write_results(text);
  file_->write(text);
  file_->commit();
}

}  // namespace graphrun::cli
