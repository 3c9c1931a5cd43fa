#include "cli/terminal/output_files.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "cli/terminal/slow_operation.h"
#include "graphrun/error.h"
#include "graphrun/executor.h"

namespace graphrun::cli {
namespace {

void open(std::optional<OutputFile>& file, const std::string& path, const char* code) {
  if (!path.empty()) file.emplace(path, code);
}

}  // namespace

OutputFiles::OutputFiles(const Arguments& arguments) {
  for (const std::string& path : arguments.logs) logs.emplace_back(path, "log.write");
  if (!arguments.tensorboard.empty()) open_events(arguments.tensorboard);
  open(losses, arguments.losses, "losses.write");
  open(weights, arguments.save_weights, "weights.write");
  open(trace, arguments.profile_trace, "profile.write");
  open(dump, arguments.verify.dump_to, "dump.write");
  open(report, arguments.report, "report.write");
  open(certificate, arguments.certificate, "certificate.write");
  open(array, arguments.show.save_array, "array.write");

  const std::vector<FlagFile> entries = opened();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!entries[i].file->is(*entries[j].file)) continue;
      throw Error(
          ErrorKind::input, "output.twice",
          fmt::format("{} and {} are the same file, '{}'", entries[j].flag, entries[i].flag, entries[i].file->path()),
          "each needs its own name");
    }
  }
  if (!arguments.model.empty()) reject(arguments.model, "the model file");
  if (!arguments.load.weights.empty()) reject(arguments.load.weights, "the weights that --weights reads");
  if (!arguments.resume.empty()) reject(arguments.resume, "the checkpoint that --resume reads");
  if (const std::optional<PluginName> plugin = plugin_name(arguments.session.executor))
    reject(plugin->path, "the executor");
  reject("/dev/stdout", "where stdout goes");
  reject("/dev/stderr", "where stderr goes");
}

OutputFiles::~OutputFiles() {
  events.reset();
  std::error_code ignored;
  if (!made_folder_.empty()) std::filesystem::remove(made_folder_, ignored);  // only if it is empty
}

// TensorBoard reads a folder's files in name order; names start with the time.
void OutputFiles::open_events(const std::string& folder) {
  std::error_code error;
  if (std::filesystem::create_directories(folder, error)) made_folder_ = folder;
  if (!std::filesystem::is_directory(folder, error)) {
    throw Error(ErrorKind::input, "tensorboard.folder",
                fmt::format("--tensorboard: cannot make the folder '{}'{}", folder,
                            error ? ": " + error.message() : std::string()));
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  std::filesystem::path path;
  do {
    path = std::filesystem::path(folder) / fmt::format("events.out.tfevents.{:010}.graphrun", seconds++);
  } while (std::filesystem::exists(path, error));
  open(events, path.string(), "tensorboard.write");
}

void OutputFiles::reject_read(const Model& model) const {
  for (const std::string& path : model.data.files) reject(path, "a file that the model reads");
}

void OutputFiles::connect(Diagnostics& diagnostics) {
  const auto wait = [&](OutputFile& file) {
    if (!file.is_direct()) return;
    const SlowOperationNotice notice(diagnostics, fmt::format("waiting for a reader of '{}'", file.path()));
    file.connect();
  };
  for (OutputFile& file : logs) wait(file);
  for (std::optional<OutputFile>* file : {&losses, &weights, &trace, &dump, &report, &certificate, &array}) {
    if (*file) wait(**file);
  }
}

std::vector<OutputFiles::FlagFile> OutputFiles::opened() const {
  std::vector<FlagFile> entries;
  const auto add = [&](std::string_view flag, const std::optional<OutputFile>& file) {
    if (file) entries.push_back({flag, &*file});
  };
  for (const OutputFile& file : logs) entries.push_back({"--log", &file});
  add("--tensorboard", events);
  add("--losses", losses);
  add("--save-weights", weights);
  add("--profile-trace", trace);
  add("--dump-to", dump);
  add("--report", report);
  add("--certificate", certificate);
  add("--save-array", array);
  return entries;
}

void OutputFiles::reject(const std::string& path, std::string_view what) const {
  for (const auto& [flag, file] : opened()) {
    if (!file->is(path) || (file->is_direct() && path.starts_with("/dev/std"))) continue;
    throw Error(ErrorKind::input, "output.input", fmt::format("{} '{}' is {}", flag, file->path(), what),
                "an output cannot replace a file that the run reads or writes elsewhere");
  }
}

}  // namespace graphrun::cli
