#include "session/checkpoint/config_fingerprint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/checksum.h"
#include "base/text.h"
#include "graph/frontend/builder_impl.h"
#include "graph/frontend/library/optimizers.h"
#include "graph/ir/graph.h"

namespace graphrun {
namespace {

constexpr std::string_view kGraph = "graph";

std::string optimizer_text(const OptimizerSpec& spec) {
  const OptimizerDef& def = row_named("optimizer", optimizers(), spec.name);
  std::string text = spec.name;
  for (const auto& [name, value] : ir::Attrs(def.attributes, {spec.attributes.begin(), spec.attributes.end()}).list()) {
    if (std::find(spec.runtime.begin(), spec.runtime.end(), name) != spec.runtime.end()) {
      text += fmt::format(" {}=runtime", name);  // its value is a state
      continue;
    }
    if (name != "lr" || !spec.lr) {
      text += fmt::format(" {}={}", name, ir::to_string(value));
      continue;
    }
    text += " lr=" + spec.lr->name;
    for (const auto& [key, number] : spec.lr->attributes) text += fmt::format(",{}={}", key, ir::to_string(number));
  }
  return text;
}

std::string plateau_text(const std::optional<LrPlateau>& plateau) {
  if (!plateau) return "";
  return fmt::format("{} mode={} patience={} min_delta={} factor={} cooldown={} min_factor={}", plateau->monitor,
                     static_cast<int>(plateau->mode), plateau->patience, plateau->min_delta, plateau->factor,
                     plateau->cooldown, plateau->min_factor);
}

// Excludes the patience, which may be raised to continue a training.
std::string stopping_text(const std::optional<EarlyStopping>& stopping) {
  if (!stopping) return "";
  return fmt::format("{} mode={} min_delta={} restore_best={}", stopping->monitor, static_cast<int>(stopping->mode),
                     stopping->min_delta, stopping->restore_best);
}

// Omits node numbers, which change with every node added before.
std::string graph_text(const ir::Graph& graph) {
  std::string text;
  const std::string numbered = ir::to_string(graph);
  for (std::size_t i = 0; i < numbered.size(); ++i) {
    if (numbered[i] != '%') {
      text += numbered[i];
      continue;
    }
    while (i < numbered.size() && numbered[i] != ' ') ++i;
  }
  return text;
}

std::vector<std::string> sorted_lines(std::string_view text) {
  const std::vector<std::string_view> unsorted = lines_of(text);
  std::vector<std::string> lines(unsorted.begin(), unsorted.end());
  std::sort(lines.begin(), lines.end());
  return lines;
}

// Splits "  h = tanh(z) : f32(batch, 6)" into the name h and the rest.
std::pair<std::string, std::string> name_and_rest(const std::string& line) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size()), equals = line.find(" = ");
  if (equals == std::string::npos || equals < first) return {"", line.substr(first)};
  return {line.substr(first, equals - first), line.substr(equals + 3)};
}

void compare_graphs(std::string_view there, std::string_view here, std::vector<std::string>& found) {
  const std::vector<std::string> a = sorted_lines(there), b = sorted_lines(here);
  std::vector<std::string> only_there, only_here;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_there));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_here));
  for (const std::string& line : only_there) {
    const auto [name, rest] = name_and_rest(line);
    const auto same = std::find_if(only_here.begin(), only_here.end(), [&, &name = name](const std::string& other) {
      return !name.empty() && name_and_rest(other).first == name;
    });
    if (same == only_here.end()) {
      found.push_back(fmt::format("graph: {} = {} in the checkpoint, not here", name, rest));
      continue;
    }
    found.push_back(fmt::format("graph: {} = {} in the checkpoint, {} here", name, rest, name_and_rest(*same).second));
    only_here.erase(same);
  }
  for (const std::string& line : only_here) {
    const auto [name, rest] = name_and_rest(line);
    found.push_back(fmt::format("graph: {} = {} here, not in the checkpoint", name, rest));
  }
  if (found.empty() && there != here) found.emplace_back("graph: its values are computed in another order");
}

}  // namespace

std::vector<ConfigEntry> training_config(const Model& model) {
  std::vector<ConfigEntry> config;
  const GraphBuilder::Impl& graph = model.graph.impl();
  const TrainSpec& train = model.train;
  const auto add = [&](std::string_view key, std::string text) {
    config.push_back({std::string(key), std::move(text)});
  };
  add(kGraph, graph_text(graph.graph));
  add("minimize", train.minimize.valid() ? graph.graph[train.minimize.id].name : "");
  add("optimizer", optimizer_text(train.optimizer));
  for (const ObjectiveSpec& one : train.objectives) {
    std::string moved;
    for (const Value value : one.parameters) moved += " " + graph.graph[value.id].name;
    add(fmt::format("objectives.{}", one.name),
        fmt::format("{} by{}, {}{}", graph.graph[one.minimize.id].name, moved, optimizer_text(one.optimizer),
                    one.every > 1 ? fmt::format(", every {} steps", one.every) : ""));
  }
  std::string assigned, frozen;
  for (const auto& one : graph.assignments) {
    assigned += fmt::format("{}{} = {}{}", assigned.empty() ? "" : ", ", graph.graph[one.state].name,
                            graph.graph[one.value].name, one.after ? " after" : "");
  }
  std::vector<std::string> kept;
  for (const auto& [id, parameter] : graph.parameters) {
    if (!parameter.trainable) frozen += (frozen.empty() ? "" : ", ") + graph.graph[id].name;
    if (!parameter.decay) kept.push_back(graph.graph[id].name);
  }
  if (!assigned.empty()) add("assign", assigned);
  if (!frozen.empty()) add("not trained", frozen);
  add("early_stopping", stopping_text(train.early_stopping));
  add("lr_plateau", plateau_text(train.lr_plateau));
  if (train.stop_at) add("stop_at", fmt::format("{}", train.stop_at->loss));
  if (train.stop_at && train.stop_at->gradient > 0) add("stop_at gradient", fmt::format("{}", train.stop_at->gradient));
  add("clip_norm", train.clip_norm_at_run_time ? "runtime" : fmt::format("{}", train.clip_norm));
  if (train.clip_value > 0) add("clip_value", fmt::format("{}", train.clip_value));
  add("batch", fmt::format("{}", model.graph.batch()));
  if (train.shards > 1) add("shards", fmt::format("{}", train.shards));
  add("seed", fmt::format("{}", train.seed));
  add("shuffle", fmt::format("{}", train.shuffle));
  add("drop_last", fmt::format("{}", train.drop_last));
  add("precision", train.precision == Precision::fp64 ? "fp64" : train.precision == Precision::tf32 ? "tf32" : "fp32");
  add("no_decay", fmt::format("{}", fmt::join(kept, ", ")));
  std::string columns;  // lists absent columns, which would otherwise go unnoticed
  for (const Split& split : model.data.splits) {
    if (split.name != "train" && split.name != "validation") continue;
    for (const auto& [name, tensor] : split.columns) {
      add(fmt::format("data.{}.{}", split.name, name),
          fmt::format("{} of hash {:016x}", to_string(TensorType{tensor.dtype(), tensor.shape(), 0}),
                      checksum(tensor.bytes())));
      columns += fmt::format("{}{}.{}", columns.empty() ? "" : ", ", split.name, name);
    }
  }
  add("data", std::move(columns));
  return config;
}

std::string fingerprint_of(const std::vector<ConfigEntry>& config) {
  Checksum sum;
  for (const ConfigEntry& entry : config) {
    for (const std::string& text : {entry.key, entry.text}) {
      sum.add(std::as_bytes(std::span(text)));
      sum.add(std::as_bytes(std::span("\n", 1)));
    }
  }
  return fmt::format("{:016x}", sum.value());
}

std::vector<std::string> differences(const std::function<std::string(std::string_view key)>& there,
                                     const std::vector<ConfigEntry>& here) {
  std::vector<std::string> found;
  const auto said = [](const std::string& text) { return text.empty() ? std::string("none") : text; };
  for (const ConfigEntry& entry : here) {
    const std::string other = there(entry.key);
    if (other == entry.text) continue;
    if (entry.key == kGraph) {
      compare_graphs(other, entry.text, found);
    } else {
      found.push_back(fmt::format("{}: {} in the checkpoint, {} here", entry.key, said(other), said(entry.text)));
    }
  }
  return found;
}

}  // namespace graphrun
