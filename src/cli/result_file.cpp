#include "result_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace graphrun::cli {

ResultFile::ResultFile(const std::string& path, const char* code) : path_(path), code_(code) {
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), "w"));
  if (!file_) throw failure(ErrorKind::input);
}

ResultFile::~ResultFile() {
  if (!file_) return;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path_, ignored)) std::filesystem::remove(path_, ignored);
}

void ResultFile::write(std::string_view text) {
  if (!file_) return;
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (std::fclose(file_.release()) != 0 || !written) throw failure(ErrorKind::run);
}

Error ResultFile::failure(ErrorKind kind) const {
  return Error(kind, code_, fmt::format("cannot write '{}': {}", path_, std::generic_category().message(errno)));
}

}  // namespace graphrun::cli
