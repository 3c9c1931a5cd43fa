// model.h: the model that the studio's page works on: a text, and the folder where its data lie.
// Contract: the text stands for the file of its name, on disk or not, so that messages and results are those of the
// command line. Files that it names are below the folder, or were named by the file that the command line gave: others
// are refused before anything is opened. Belongs to one thread. Throws Error (kind input).
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
  explicit StudioModel(const Arguments& arguments);  // of the verb `studio`: its model, if there is one, is read

  const std::filesystem::path& folder() const { return folder_; }
  const std::string& text() const { return text_; }
  const std::string& path() const { return path_; }  // as the command line would name it
  std::string run_dir() const;
  const std::string& executor() const { return given_.session.executor; }

  void set(std::string text) { text_ = std::move(text); }
  void open(const std::string& name);  // of the folder
  // There. A file that holds something else than was last read or written here is only taken with `over`.
  void save(const std::string& name, bool over);
  bool is_changed_outside() const;  // the file is there, and not as it was
  // Names in the folder, sorted.
  std::vector<std::string> files(bool (*wanted)(const std::filesystem::path& name)) const;

  // A name in the folder as a path; throws Error for one that leads out of it.
  std::filesystem::path place(const std::string& name) const;

  // The command line that does something with this text. `with_data`: its files will be opened.
  Arguments arguments(const char* verb, bool with_data) const;

 private:
  void reject_outside() const;

  const Arguments& given_;
  std::filesystem::path folder_;
  std::string path_, text_;
  std::string on_disk_;            // of the file, as it was last read or written here
  std::set<std::string> trusted_;  // texts of the file that the command line gave
};

bool is_table(const std::filesystem::path&name), is_model(const std::filesystem::path&name);  // by its ending

// A folder for files that nobody keeps, removed at the end.
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

std::string read_small_file(const std::filesystem::path& path);  // up to 32 MiB
void write_whole_file(const std::filesystem::path& path, std::string_view text);

}  // namespace graphrun::cli
