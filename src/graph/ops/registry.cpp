// registry.cpp: the explicit list of op families.
#include <map>
#include <stdexcept>

#include "graph/ops/op_def.h"

namespace graphrun {

const std::vector<OpDef>& all_ops() {
  static const std::vector<OpDef> registry = [] {
    std::vector<OpDef> all;
    for (auto family :
         {ops::sources, ops::elementwise, ops::matmul, ops::reductions, ops::rowwise, ops::movement, ops::random}) {
      for (OpDef& op : family()) {
        if (op.grad == nullptr && op.no_gradient.empty()) {
          throw std::logic_error("op without a gradient and without a reason: " + std::string(op.name));
        }
        all.push_back(std::move(op));
      }
    }
    return all;
  }();
  return registry;
}

const OpDef* find_op(std::string_view name) {
  static const std::map<std::string_view, const OpDef*> index = [] {
    std::map<std::string_view, const OpDef*> by_name;
    for (const OpDef& op : all_ops()) {
      if (!by_name.emplace(op.name, &op).second) throw std::logic_error("op registered twice: " + std::string(op.name));
    }
    return by_name;
  }();
  const auto entry = index.find(name);
  return entry == index.end() ? nullptr : entry->second;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDef& op : all_ops()) {
    if (!op.internal) names.emplace_back(op.name);
  }
  return names;
}

}  // namespace graphrun
