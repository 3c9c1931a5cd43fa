// registry.cpp: the explicit list of op families.
#include <array>
#include <stdexcept>

#include "graph/ops/op_def.h"
#include "graphrun/op.h"

namespace graphrun {

const std::vector<OpDef>& all_ops() {
  static const std::vector<OpDef> registry = [] {
    std::vector<OpDef> all;
    for (auto family :
         {ops::sources, ops::elementwise, ops::matmul, ops::reductions, ops::rowwise, ops::movement, ops::random}) {
      for (OpDef& op : family()) {
        if (op.grad == nullptr && op.no_gradient.empty()) {
          throw std::logic_error("op without a gradient and without a reason: " + std::string(op.name()));
        }
        all.push_back(std::move(op));
      }
    }
    return all;
  }();
  return registry;
}

const OpDef& op_def(Op op) {
  static const std::array<const OpDef*, kOps> index = [] {
    std::array<const OpDef*, kOps> by_number{};
    for (const OpDef& def : all_ops()) {
      const OpDef*& entry = by_number.at(static_cast<std::size_t>(def.op));
      if (entry != nullptr) throw std::logic_error("op registered twice: " + std::string(def.name()));
      entry = &def;
    }
    return by_number;
  }();
  const OpDef* const def = index.at(static_cast<std::size_t>(op));
  if (def == nullptr) throw std::logic_error("op without a definition: " + std::string(name_of(op)));
  return *def;
}

const OpDef* find_op_def(std::string_view name) {
  const std::optional<Op> op = find_op(name);
  return op ? &op_def(*op) : nullptr;
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const OpDef& op : all_ops()) {
    if (!op.internal) names.emplace_back(op.name());
  }
  return names;
}

}  // namespace graphrun
