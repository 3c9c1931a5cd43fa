#include "cli/pictures/picture_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "graphrun/error.h"
#include "plot/render.h"

namespace graphrun::cli {

namespace {

// The path of --output, after checks that it goes with the other flags.
const std::string& checked_path(const Arguments& arguments) {
  const std::string& path = arguments.output;
  if (path.empty()) return path;
  if (!arguments.svg && !arguments.csv && !arguments.html)
    throw Error(ErrorKind::input, "usage.flags",
                arguments.verb == "plan" ? "--output goes with --svg, --csv, --html or --buffers"
                                         : "--output goes with --svg, which draws a picture");
  const std::filesystem::path extension = std::filesystem::path(path).extension();
  if (arguments.svg && extension != ".svg" && extension != ".png")
    throw Error(ErrorKind::input, "plot.format",
                fmt::format("'{}' has a format that {} cannot draw", path, arguments.verb),
                "the name ends in .svg or .png");
  return path;
}

}  // namespace

PictureFile::PictureFile(const Arguments& arguments, const char* code)
    : file_(checked_path(arguments), code, {arguments.model},
            "an output cannot replace a file that the run reads or writes elsewhere"),
      is_png_(std::filesystem::path(arguments.output).extension() == ".png") {}

void PictureFile::write(const plot::Drawing& drawing) {
  write(is_png_ ? plot::as_png(drawing) : plot::as_svg(drawing));
}

}  // namespace graphrun::cli
