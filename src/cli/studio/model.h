// model.h: model that the studio's page edits: its text, and the folder of its data.
// Contract: the text overrides the file of its name, whether or not that exists, so that messages and results match the
// command line. Files named by the text must be below the folder, or named by the file that the command line gave;
// others are rejected before any file is opened. Belongs to one thread. Throws Error (kind input).
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line/arguments.h"

namespace graphrun::cli {

class StudioModel {
 public:
  explicit StudioModel(const Arguments& arguments);  // arguments of the verb `studio`; reads its model, if any

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& text() const { return text_; }
  const std::string& path() const { return path_; }  // path for the command line
  std::string run_dir() const;
  const std::string& executor() const { return given_.session.executor; }

  // `name`: file name that messages use, of a model that may not be saved; empty: unchanged.
  void set(std::string text, const std::string& name = {});
  void open(const std::string& name);  // name: in the folder
  // Saves into the folder. Without `over`, does not overwrite a file whose content was not last read or written here.
  void save(const std::string& name, bool over);
  bool is_changed_outside() const;  // the file exists with other content than last read or written here
  // File names in the folder, sorted.
  std::vector<std::string> files(bool (*wanted)(const std::filesystem::path& name)) const;

  // Resolves a name in the folder; throws Error if the path leads out of it.
  std::filesystem::path place(const std::string& name) const;

  // Arguments that run `verb` on this text. `with_data`: the verb will open the model's files.
  Arguments arguments(const char* verb, bool with_data) const;

 private:
  void reject_outside() const;

  const Arguments& given_;
  std::filesystem::path folder_;
  std::string path_, text_;
  std::string on_disk_;            // content of the file when last read or written here
  std::set<std::string> trusted_;  // strings of the file that the command line gave
};

bool is_table(const std::filesystem::path&name), is_model(const std::filesystem::path&name);  // checks the extension

// A temporary folder, removed by the destructor.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

std::string read_small_file(const std::filesystem::path& path);  // at most 32 MiB
void write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace graphrun::cli
