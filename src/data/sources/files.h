// files.h: locates data files, reads each of them once, and collects warnings.
// Contract: searches the folder of the model, then the data folder, then GRAPHRUN_DATA. An absolute path is used as is.
// The current directory is searched only for a model from a pipe. Throws Error (kind input) that names the searched
// folders and the nearest file name.
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

// Records of a stream, used instead of a file's bytes, and their position for messages.
struct Chunk {
  std::string bytes;
  std::size_t rows_before = 0;
  int lines_before = 0;
  bool is_lines = false;  // JSON Lines: one object per line
};

class Files {
 public:
  explicit Files(const DataOptions& options);

  // Sets the contents of the file at `path` for later reads.
  void provide(const std::string& path, Chunk chunk) { chunks_.insert_or_assign(path, std::move(chunk)); }
  Chunk read_chunk(const std::string& path);  // the provided chunk, or the whole file

  enum class Find { file, folder_too };
  std::string find(const std::string& name, Find what = Find::file);  // path of what exists
  const std::vector<std::string>& found() const { return found_; }
  std::string read(const std::string& path);  // contents; those of a pipe are cached, as it can be read only once
  // Array of the file, read at most once even if several splits take ranges of it.
  ArrayPtr array(const std::string& path, const std::function<Array(const std::string& path)>& read);

  void report_progress(std::string_view what, double done = -1) const {
    if (on_progress_) on_progress_(what, done);
  }
  void warn(std::string text);  // about the data read; duplicates are dropped
  const std::vector<std::string>& warnings() const { return warnings_; }
  // Rows per column with values far outside the training rows.
  void count_far(const std::string& column, std::int64_t rows) { far_[column] = rows; }
  const std::map<std::string, std::int64_t>& far() const { return far_; }

 private:
  OnProgress on_progress_;
  std::vector<std::string> folders_, found_;
  std::map<std::string, ArrayPtr> read_;
  std::map<std::string, std::string> pipes_;
  std::map<std::string, Chunk> chunks_;
  std::vector<std::string> warnings_;
  std::map<std::string, std::int64_t> far_;
  std::unordered_set<std::string> warned_;
};

}  // namespace graphrun::data
