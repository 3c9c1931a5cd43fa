#include "cli/stored_runs/run_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/json_writer.h"
#include "cli/terminal/csv_cell.h"
#include "graphrun/error.h"

namespace graphrun::cli {
namespace {

constexpr std::string_view kSettings = "settings.";
constexpr std::string_view kChanges = "changes";  // listed if any run has it
// Keys that always differ and were not chosen, or that repeat a setting.
constexpr std::string_view kIncidental[] = {"seconds", "steps_per_second", "weights_hash", "arena_bytes", "seed"};

bool is_incidental(std::string_view key) {
  return std::find(std::begin(kIncidental), std::end(kIncidental), key) != std::end(kIncidental);
}

bool is_split_figure(std::string_view key) {
  for (const std::string_view split : {"train.", "validation.", "test."}) {
    if (key.starts_with(split)) return true;
  }
  return false;
}

// Settings: from the model file, or changed during training.
bool is_setting(std::string_view key) {
  for (const std::string_view part : {"settings.", "graph.", "data.", "inputs.", "parameters.", "constants."}) {
    if (key.starts_with(part)) return true;
  }
  return key == "model" || key == kChanges;
}

struct Key {
  std::string name;
  bool varies = false;   // among the runs that have the key
  bool differs = false;  // varies, or some runs lack the key
};

// If optimizers differ, lists only their names, not the keys that only one of them has.
bool is_of_optimizer(std::string_view key) {
  return key.starts_with("settings.optimizer.");
}

// All keys of finished runs, in the runs' own order.
std::vector<Key> all_keys(const std::vector<RunRecord>& runs) {
  std::vector<Key> keys;
  std::vector<std::string> first;
  std::vector<std::size_t> count;
  std::unordered_map<std::string, std::size_t> place;
  std::size_t finished = 0;
  for (const RunRecord& run : runs) {
    if (run.fields.empty() || run.state == RunRecord::State::unreadable) continue;
    ++finished;
    for (const RunRecord::Field& entry : run.fields) {
      const auto [at, fresh] = place.emplace(entry.key, keys.size());
      if (fresh) {
        keys.push_back({entry.key});
        first.push_back(entry.text);
        count.push_back(0);
      }
      ++count[at->second];
      if (entry.text != first[at->second]) keys[at->second].varies = true;
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i].differs = keys[i].varies || count[i] != finished;
  return keys;
}

std::string cell(const RunRecord& run, std::string_view key) {
  const RunRecord::Field* entry = run.find(key);
  if (entry == nullptr) return "-";
  const bool fractional = entry->number && entry->text.find_first_of(".e") != std::string::npos;
  return fractional ? fmt::format("{:.6g}", *entry->number) : printable(entry->text);
}

std::string short_key(std::string_view key) {
  return printable(key.starts_with(kSettings) ? key.substr(kSettings.size()) : key);
}

}  // namespace

std::string distinct_part(const std::string& key, const std::vector<std::string>& keys) {
  const auto last = [](const std::string& one) { return one.substr(one.rfind('.') + 1); };
  return std::ranges::count(keys, last(key), last) > 1 ? short_key(key) : printable(last(key));
}

std::string distinct_name(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  std::string name;
  for (std::size_t k = 0; k < keys.size(); ++k)
    name += fmt::format("{}{}={}", k > 0 ? " " : "", distinct_part(keys[k], keys), values[k]);
  return name;
}

std::vector<std::string> listed_keys(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys;
  for (const Key& key : all_keys(runs)) {
    const bool differs = is_of_optimizer(key.name) ? key.varies : key.differs;
    const bool is_listed = is_setting(key.name) ? differs || key.name == kChanges : is_split_figure(key.name);
    if (is_listed) keys.push_back(key.name);
  }
  const auto failed = [](const RunRecord& run) { return run.state == RunRecord::State::failed; };
  if (std::any_of(runs.begin(), runs.end(), failed)) keys.push_back("steps");  // steps completed before the failure
  std::stable_partition(keys.begin(), keys.end(), is_setting);  // a run with different keys lists its settings last
  return keys;
}

std::vector<std::string> compared_keys(const std::vector<RunRecord>& runs, bool with_repeats) {
  std::vector<std::string> keys = listed_keys(runs);
  std::erase_if(keys, [&](const std::string& key) {
    return !is_setting(key) || (!with_repeats && (key == kSeedKey || key == kFoldKey));
  });
  return keys;
}

std::vector<std::string> differing_keys(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys;
  for (const Key& key : all_keys(runs)) {
    if (key.differs && !is_incidental(key.name)) keys.push_back(key.name);
  }
  return keys;
}

std::string known_key(const std::vector<RunRecord>& runs, std::string_view name) {
  std::vector<std::string> names;
  for (const Key& key : all_keys(runs)) names.push_back(key.name);
  return known_key(names, name);
}

std::string known_key(const std::vector<std::string>& names, std::string_view name) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return std::string(name);
  for (const char* split : {"validation", "test"}) {
    const std::string full = fmt::format("{}.{}", split, name);
    if (std::find(names.begin(), names.end(), full) != names.end()) return full;
  }
  const std::string end = fmt::format(".{}", name);
  for (const std::string& known : names) {
    if (known.ends_with(end)) return known;
  }
  const std::string near = nearest_name(name, names);
  throw Error(ErrorKind::input, "runs.column", fmt::format("no run has a '{}'", name),
              near.empty() ? std::string("graphrun runs FOLDER --json prints every column by its key")
                           : fmt::format("did you mean '{}'?", near));
}

std::vector<std::vector<std::string>> run_table(const std::vector<RunRecord>& runs,
                                                const std::vector<std::string>& keys, bool across) {
  const bool shows_state =
      std::any_of(runs.begin(), runs.end(), [](const RunRecord& run) { return run.state != RunRecord::State::done; });
  std::vector<std::vector<std::string>> table(1, {"run"});
  if (shows_state) table[0].push_back("state");
  for (const std::string& key : keys) table[0].push_back(short_key(key));
  for (const RunRecord& run : runs) {
    table.push_back({printable(run.name)});
    if (shows_state) table.back().emplace_back(name_of(run.state));
    for (const std::string& key : keys) table.back().push_back(cell(run, key));
  }
  if (!across) return table;
  std::vector<std::vector<std::string>> turned(table[0].size());
  for (const auto& row : table) {
    for (std::size_t i = 0; i < row.size(); ++i) turned[i].push_back(row[i]);
  }
  return turned;
}

std::string runs_csv(const std::vector<RunRecord>& runs, const std::vector<std::string>& keys) {
  const bool named = !runs.front().folder.empty();
  std::string text = named ? "run,state," : "";
  for (const std::string& key : keys) text += csv_cell(key) + ",";
  text.back() = '\n';
  for (const RunRecord& run : runs) {
    if (named) text += fmt::format("{},{},", csv_cell(run.name), name_of(run.state));
    for (const std::string& key : keys) {
      const RunRecord::Field* entry = run.find(key);
      text += (entry == nullptr ? std::string() : csv_cell(entry->text)) + ",";
    }
    text.back() = '\n';
  }
  return text;
}

std::string runs_json(const std::vector<RunRecord>& runs) {
  JsonWriter json;
  json.begin_array();
  for (const RunRecord& run : runs) {
    json.begin_object();
    if (!run.folder.empty())
      json.member("run", run.name).member("folder", run.folder).member("state", name_of(run.state));
    for (const RunRecord::Field& entry : run.fields) {
      json.key(entry.key);
      entry.number ? json.value(*entry.number) : json.value(std::string_view(entry.text));
    }
    json.end_object();
  }
  return json.end_array().text() + "\n";
}

bool has_runs(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_directory(folder, ignored) && !is_run_folder(folder) && !read_runs(folder).empty();
}

std::string_view name_of(RunRecord::State state) {
  static constexpr std::string_view kNames[] = {"done", "interrupted", "failed", "unfinished", "unreadable"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace graphrun::cli
