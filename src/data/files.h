// files.h: where data files are looked for, each of them read once, and what reading them warned of.
// Contract: beside the model, then the data folder, then GRAPHRUN_DATA; an absolute path as it is; the current
// directory only for a model from a pipe. Throws Error (kind input) that names the folders tried and the nearest file
// name.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "data/array.h"
#include "data/dataset.h"

namespace graphrun::data {

// Some records of a stream, in place of a file's bytes, and what stood before them: for messages.
struct Chunk {
  std::string bytes;
  std::size_t rows_before = 0;
  int lines_before = 0;
  bool is_lines = false;  // of JSON: an object a line
};

class Files {
 public:
  explicit Files(const DataOptions& options);

  // What the file at the path holds from now on.
  void provide(const std::string& path, Chunk chunk) { chunks_.insert_or_assign(path, std::move(chunk)); }
  Chunk read_chunk(const std::string& path);  // that, or the whole file

  std::string find(const std::string& name);  // the path of an existing file that is no folder
  const std::vector<std::string>& found() const { return found_; }
  std::string read(const std::string& path);  // its bytes; those of a pipe are kept, for it gives them once
  // The array of the file, read at most once though several splits take ranges of it.
  ArrayPtr array(const std::string& path, const std::function<Array(const std::string& path)>& read);

  void report_progress(std::string_view what, double done = -1) const {  // OnProgress
    if (on_progress_) on_progress_(what, done);
  }
  void warn(std::string text);  // about what was read; the same once
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  OnProgress on_progress_;
  std::vector<std::string> folders_, found_;
  std::map<std::string, ArrayPtr> read_;
  std::map<std::string, std::string> pipes_;
  std::map<std::string, Chunk> chunks_;
  std::vector<std::string> warnings_;
  std::unordered_set<std::string> warned_;
};

}  // namespace graphrun::data
