// init.cpp: the verb `init`: writes a starter model file for a CSV file.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command_line/verbs.h"
#include "cli/terminal/result_file.h"
#include "graphrun/error.h"
#include "graphrun/model_template.h"

namespace graphrun::cli {
namespace {

// Path of the data relative to the folder of `output`, as the model file stores it.
std::string source_of(const std::string& csv, const std::string& output) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::absolute(output, error).parent_path();
  const std::filesystem::path relative =
      std::filesystem::proximate(std::filesystem::absolute(csv, error), folder, error);
  return error || relative.empty() ? csv : relative.string();
}

int run_init(const Arguments& arguments, Diagnostics& diagnostics) {
  const std::string& path = arguments.output;
  std::error_code ignored;
  if (!path.empty() && std::filesystem::is_regular_file(path, ignored)) {
    throw Error(ErrorKind::input, "init.exists", fmt::format("'{}' already exists", path),
                "init writes a new file; remove the old one or choose another name");
  }
  const ModelTemplate model =
      model_template(arguments.word, arguments.column, source_of(arguments.word, path.empty() ? "model.json" : path),
                     arguments.has_header, arguments.window);
  for (const std::string& note : model.notes) diagnostics.note(note);
  ResultFile(path, "init.write").write(model.text);
  if (!path.empty()) diagnostics.note(fmt::format("wrote {}; graphrun {} trains it", path, path));
  return kDone;
}

}  // namespace

const Verb init_verb = {
    "init",
    "",
    Positionals::data,
    "write a model file for a CSV file or a folder of images",
    R"(Inspects a CSV file and writes a model that predicts the column --label from the others. If this column is
categorical or contains only two distinct numbers, init writes a classifier. The first line of the file names
the columns. A table of numbers may omit this line, and so may any table with --no-header. The columns are
then called c0, c1, ... Lines such as "1 1:0.5 3:1.2" (libsvm) have the label in c0, and features from c1 on.

With --window 12, the model predicts a row of --label from the 12 rows before it (docs/guide/forecasts.md).

For a folder that contains a folder of PNG files for each class, init writes a convolutional network that
predicts the class of an image, without --label (docs/guide/images.md).

The model file contains every inferred setting: delimiter, decimal comma, column types (number, date or
category) and imputation. init lists the omitted columns on stderr. Without --output, the model goes to
stdout. init never overwrites an existing file.)",
    R"(graphrun init houses.csv --label price -o houses.json
graphrun houses.json
graphrun init airline.csv --label passengers --window 12 -o airline.json
graphrun init photos -o photos.json)",
    run_init};

}  // namespace graphrun::cli
