// result_file.h: a file of results, opened before the work that makes them.
// Contract: a path that cannot be written is an Error (kind input) before the work begins; when the work fails the file
// is removed again, so that nothing half-written is left. Without a path nothing happens.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "graphrun/error.h"

namespace graphrun::cli {

class ResultFile {
 public:
  ResultFile(const std::string& path, const char* code);  // code: of the Error, "losses.write"
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  bool wanted() const { return file_ != nullptr; }
  void write(std::string_view text);  // all of it, once

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  Error failure(ErrorKind kind) const;

  std::string path_;
  const char* code_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace graphrun::cli
