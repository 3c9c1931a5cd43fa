#include "cli/studio/model.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "graphrun/error.h"
#include "graphrun/output_file.h"
#include "studio/body.h"

namespace graphrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxFileBytes = 32 << 20;

bool is_below(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error), root = fs::weakly_canonical(folder, error);
  if (error) return false;
  return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
}

bool leads_out(const std::string& name) {
  const fs::path path(name);
  return path.is_absolute() || std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

[[noreturn]] void reject_place(const std::string& name) {
  throw Error(ErrorKind::input, "studio.outside", fmt::format("'{}' is not in the studio's folder", name),
              "the studio opens files in the folder of its model, and files that the model named at startup");
}

}  // namespace

bool is_table(const fs::path& name) {
  std::string ending = name.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return ending == ".csv" || ending == ".tsv" || ending == ".tab" || ending == ".txt";
}

bool is_model(const fs::path& name) {
  return name.extension() == ".json";
}

std::string read_small_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw Error(ErrorKind::input, "studio.read", fmt::format("'{}' is not a file", path.string()));
  if (fs::file_size(path, error) > kMaxFileBytes)
    throw Error(ErrorKind::input, "studio.read", fmt::format("'{}' is larger than 32 MiB", path.string()));
  return read_file(path.string());
}

void write_whole_file(const fs::path& path, std::string_view text) {
  OutputFile file(path.string(), "studio.write");
  file.write(text);
  file.commit();
}

StudioModel::StudioModel(const Arguments& arguments) : given_(arguments) {
  path_ = given_.model.empty() ? "model.json" : given_.model;
  const fs::path parent = fs::path(path_).parent_path();
  folder_ = fs::absolute(parent.empty() ? fs::path(".") : parent).lexically_normal();
  if (given_.model.empty()) return;
  text_ = on_disk_ = read_small_file(path_);
  try {
    for (std::string& text : studio::json_texts(text_)) trusted_.insert(std::move(text));
  } catch (const Error&) {  // not JSON: the page opens and reports it
  }
}

std::string StudioModel::run_dir() const {
  if (!given_.run_dir.empty()) return given_.run_dir;
  return (fs::path(path_).parent_path() / "runs").string();
}

fs::path StudioModel::place(const std::string& name) const {
  if (name.empty() || leads_out(name) || !is_below(folder_ / name, folder_)) reject_place(name);
  return folder_ / name;
}

void StudioModel::set(std::string text, const std::string& name) {
  text_ = std::move(text);
  const fs::path named = fs::path(name).filename();
  if (name.empty() || named == fs::path(path_).filename()) return;
  place(named.string());
  path_ = (fs::path(path_).parent_path() / named).string();
  on_disk_.clear();
}

void StudioModel::open(const std::string& name) {
  text_ = on_disk_ = read_small_file(place(name));
  path_ = (fs::path(path_).parent_path() / name).string();
}

void StudioModel::save(const std::string& name, bool over) {
  if (!name.ends_with(".json"))
    throw Error(ErrorKind::input, "studio.name", fmt::format("a model file ends with .json, not '{}'", name));
  const fs::path path = place(name);
  std::error_code error;
  if (!over && fs::exists(path, error)) {
    const std::string there = read_small_file(path);
    const bool is_own = path == folder_ / fs::path(path_).filename() && there == on_disk_;
    if (!is_own && there != text_)
      throw Error(ErrorKind::input, "studio.exists", fmt::format("'{}' contains another model", name),
                  "choose another name, or open it first");
  }
  write_whole_file(path, text_);
  on_disk_ = text_;
  path_ = (fs::path(path_).parent_path() / name).string();
}

bool StudioModel::is_changed_outside() const {
  try {
    return !on_disk_.empty() && read_small_file(path_) != on_disk_;
  } catch (const Error&) {  // deleted or unreadable: saving recreates it
    return false;
  }
}

std::vector<std::string> StudioModel::files(bool (*wanted)(const fs::path& name)) const {
  constexpr std::size_t kMax = 500;
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end && names.size() < kMax;
       it.increment(error)) {
    if (const fs::path name = it->path().filename(); wanted(name)) names.push_back(name.string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Checks every string of the text: rejects paths that lead out of the folder, also through a symbolic link.
void StudioModel::reject_outside() const {
  for (const std::string& text : studio::json_texts(text_)) {
    if (trusted_.count(text) != 0) continue;
    const bool names_a_place = !text.empty() && text.find('\n') == std::string::npos && text.size() < 4096;
    if (!names_a_place) continue;
    if (leads_out(text)) reject_place(text);
    std::error_code error;
    if (fs::exists(folder_ / text, error) && !is_below(folder_ / text, folder_)) reject_place(text);
  }
}

Arguments StudioModel::arguments(const char* verb, bool with_data) const {
  if (with_data) reject_outside();
  Arguments made = given_;
  made.verb = verb;
  made.model = path_;
  made.run_dir.clear();
  made.quiet = true;
  made.load.text = std::make_shared<std::optional<std::string>>(text_);
  made.load.piped_weights = std::make_shared<std::optional<std::string>>();
  return made;
}

ScratchFolder::ScratchFolder() {
  std::error_code error;
  std::string name = (fs::temp_directory_path(error) / "graphrun-studio-XXXXXX").string();
  if (error || mkdtemp(name.data()) == nullptr)
    throw Error(ErrorKind::input, "studio.scratch",
                fmt::format("cannot create a temporary folder: {}", std::strerror(errno)), "set TMPDIR to another one");
  path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace graphrun::cli
