#include "cli/command_line/stored_arguments.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "graphrun/executor.h"

namespace graphrun::cli {

namespace fs = std::filesystem;

bool is_given(const std::string& data_dir) {
  const char* environment = std::getenv("GRAPHRUN_DATA");
  return !data_dir.empty() && (environment == nullptr || data_dir != environment);
}

Arguments stored_arguments(const std::string& run, const RunProvenance& provenance) {
  const fs::path given_in(provenance.folder);
  const auto placed = [&](const std::string& path) { return path.empty() ? path : (given_in / path).string(); };
  const std::string model = (fs::path(run) / "model.json").string();
  std::vector<const char*> words;
  bool names_executor = false;
  for (const std::string& word : provenance.command) {
    words.push_back(word == provenance.model_file ? model.c_str() : word.c_str());
    names_executor = names_executor || word.starts_with("--executor");
  }
  Arguments arguments = parse(static_cast<int>(words.size()), words.data());
  arguments.model = model;
  arguments.load.overrides.clear();  // the stored model already includes them
  const std::string original = placed(provenance.model_file);
  arguments.load.weights = placed(arguments.load.weights);
  if (arguments.load.weights.empty() && original.ends_with(".safetensors")) arguments.load.weights = original;
  // The run searched for data files next to its model first. GRAPHRUN_DATA still applies, with the lowest priority.
  if (is_given(arguments.load.data_dir))
    arguments.load.data_dir = placed(arguments.load.data_dir);
  else
    arguments.load.data_dir = fs::path(original).parent_path().string();
  std::string& executor = arguments.session.executor;
  if (!names_executor || executor == "auto") executor = provenance.executor;
  if (plugin_name(executor)) executor = placed(executor);
  arguments.session.profiling = Profiling::off;
  return arguments;
}

}  // namespace graphrun::cli
