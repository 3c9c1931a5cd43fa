#include "cli/stored_runs/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <thread>

#include "base/descriptor.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/command_line/help.h"
#include "graphrun/error.h"
#include "graphrun/output_file.h"
#include "graphrun/run_folder.h"

namespace graphrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnnamedResult = "result.json.tmp";

[[noreturn]] void reject(const fs::path& folder, const std::error_code& error) {
  throw Error(ErrorKind::input, "runs.folder",
              fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
}

// Creates the folder with the first unused number. Creation is atomic, so concurrent processes get different ones.
fs::path counted_up(const fs::path& parent) {
  std::error_code error;
  int last = 0;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error)) {
    last = std::max(last, parse_number<int>(entry->path().filename().string()).value_or(0));
  }
  for (;;) {
    fs::path folder = parent / fmt::format("{:04}", ++last);
    if (fs::create_directory(folder, error)) return folder;
    if (error && error != std::errc::file_exists) reject(folder, error);
  }
}

fs::path named(const fs::path& parent, const std::string& name, bool resumes) {
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
    throw Error(ErrorKind::input, "runs.name", fmt::format("'{}' is not a valid name for a folder in --run-dir", name));
  fs::path folder = parent / name;
  std::error_code error;
  if (!fs::create_directory(folder, error) && error) reject(folder, error);
  const bool is_run = is_run_folder(folder.string());
  if (is_run && !resumes && read_run(folder.string()).state == RunRecord::State::done)
    throw Error(ErrorKind::input, "runs.exists", fmt::format("the run '{}' already exists", folder.string()),
                "choose another --run-name or remove that folder; --resume continues the run");
  // A run that is killed early may leave the folder of its checkpoints and temporary files (output_file.h).
  const bool is_empty = std::ranges::all_of(fs::directory_iterator(folder, error), [](const auto& entry) {
    return entry.path().filename() == "checkpoints" || entry.path().extension() == ".tmp";
  });
  if (!is_run && !is_empty)
    throw Error(ErrorKind::input, "runs.exists", fmt::format("'{}' already exists and is not a run", folder.string()),
                "choose another --run-name");
  return folder;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

void write_file(const std::string& path, std::string_view text, bool synced = true) {
  OutputFile file(path, "runs.write");
  if (!synced) file.defer_sync();
  file.write(text);
  file.commit();
}

[[noreturn]] void reject_file(const fs::path& path, int error) {
  throw Error(ErrorKind::run, "runs.write",
              fmt::format("cannot write '{}': {}", path.string(), std::generic_category().message(error)));
}

}  // namespace

void UnsyncedRun::write_result() const {
  write_file((fs::path(folder) / kUnnamedResult).string(), result, false);
}

void UnsyncedRun::name_result() const {
  std::error_code error;
  const fs::path path = fs::path(folder) / "result.json";
  fs::rename(fs::path(folder) / kUnnamedResult, path, error);
  if (error) reject_file(path, error.value());
}

void UnsyncedRun::sync(std::map<::dev_t, bool>& synced) const {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (opened.number() < 0 || ::fstat(opened.number(), &status) != 0) reject_file(folder, errno);
  const auto [found, is_first] = synced.try_emplace(status.st_dev);
  if (is_first) found->second = ::syncfs(opened.number()) == 0;  // reports write errors from Linux 5.8 on
  if (found->second) return;
  // Some file of some run could not be written: each run finds out whether it is one of its own.
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const Descriptor file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0 || ::fsync(file.number()) != 0) reject_file(entry.path(), errno);
  }
  // Some file systems do not support it and return these errors, as in output_file.cpp.
  if (::fsync(opened.number()) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EBADF)
    reject_file(folder, errno);
}

RunFolder::RunFolder(Arguments& arguments, UnsyncedRun* unsynced) : arguments_(arguments), unsynced_(unsynced) {
  if (arguments.run_dir.empty()) return;
  std::error_code error;
  const fs::path parent(arguments.run_dir);
  fs::create_directories(parent, error);
  std::error_code ignored;
  if (!fs::is_directory(parent, ignored))
    reject(parent, error ? error : std::make_error_code(std::errc::not_a_directory));
  folder_ =
      (arguments.run_name.empty() ? counted_up(parent) : named(parent, arguments.run_name, !arguments.resume.empty()))
          .string();
  arguments.logs.push_back(file("log.csv"));
  arguments.hash_weights = true;
  if (arguments.save_weights.empty()) arguments.save_weights = file("weights.npz");
  const CheckpointEvery& every = arguments.checkpoint_every;
  const bool checkpoints = every.epochs > 0 || every.steps > 0 || every.seconds > 0 || arguments.checkpoint_keep ||
                           !arguments.resume.empty();
  if (checkpoints && arguments.checkpoint_dir.empty()) arguments.checkpoint_dir = file("checkpoints");
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (folder_.empty() || begun_) return;
  fs::remove(file("checkpoints"), ignored);  // only if it is empty
  fs::remove(folder_, ignored);
}

std::string RunFolder::file(std::string_view name) const {
  return (fs::path(folder_) / name).string();
}

void RunFolder::begin(const Session& session) {
  if (folder_.empty()) return;
  std::error_code none;
  fs::remove(file("result.json"), none);  // from a run that is replaced or resumed
  fs::remove(file("changes.json"), none);
  fs::remove(file(kUnnamedResult), none);  // from a run that was killed
  JsonWriter json;
  utsname system{};
  ::uname(&system);
  std::error_code ignored;
  json.begin_object().member("command", arguments_.command);
  json.member("folder", fs::current_path(ignored).string());
  json.member("started", utc_now());
  json.member("model_file", session.model().file).member("version", version_text());
  json.member("system", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  json.member("threads", std::thread::hardware_concurrency()).member("executor", session.executor());
  write_file(file("run.json"), json.end_object().text() + "\n", unsynced_ == nullptr);
  begun_ = true;
  if (session.model().canonical) write_file(file("model.json"), session.model().canonical(), unsynced_ == nullptr);
}

void RunFolder::write_changes(std::string_view changes) const {
  if (!folder_.empty()) write_file(file("changes.json"), std::string(changes) + "\n");
}

void RunFolder::end(std::string_view result) const {
  if (folder_.empty()) return;
  if (unsynced_ == nullptr) return write_file(file("result.json"), result);
  *unsynced_ = {folder_, std::string(result)};
}

}  // namespace graphrun::cli
