// operand_notes.cpp: notes on the operands of a shape error: where each is defined, or its text in the expression.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/frontend/expressions/expression.h"

namespace graphrun::expression {
namespace {

constexpr std::size_t kMaxText = 60;  // bytes of an operand's text in a message

// Replaces only whole names, not parts of longer ones.
void replace_name(std::string& text, const std::string& name, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
    const std::size_t end = at + name.size();
    const bool whole = (at == 0 || !is_name_part(text[at - 1])) && (end == text.size() || !is_name_part(text[end]));
    if (whole) text.replace(at, name.size(), with);
    at += whole ? with.size() : name.size();
  }
}

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_name_part);
}

std::string definition(const ir::Node& node) {
  if (node.source.line == 0)
    return node.source.pointer.empty() ? "" : fmt::format("{} is set at {}", node.name, node.source.pointer);
  return fmt::format("{} is defined at {} (line {}, column {})", node.name, node.source.pointer, node.source.line,
                     node.source.column);
}

}  // namespace

std::string attribute_at_fault(const Error& error, const std::vector<std::string>& given) {
  if (const auto* known = dynamic_cast<const ir::AttrError*>(&error)) {
    for (const std::string& name : given) {
      if (ir::is_same_attr(name, known->attribute)) return name;
    }
    return known->attribute;
  }
  const Diagnostic& d = error.diagnostics().front();
  if (!d.code.starts_with("attribute.")) return {};
  for (const std::string& name : given) {
    std::string text = d.message;
    replace_name(text, name, "");
    if (text != d.message) return name;
    if (d.code == "attribute.axis" && ir::is_same_attr(name, "axis")) return name;
  }
  return {};
}

Error with_notes(const GraphBuilder::Impl& graph, std::span<const OperandNote> operands, const Error& error) {
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  for (Diagnostic& d : diagnostics) {
    if (!d.code.starts_with("shape.") && !d.code.starts_with("dtype.")) continue;
    std::set<ir::NodeId> seen;
    for (const OperandNote& operand : operands) {
      if (!seen.insert(operand.node).second) continue;
      const ir::Node& node = graph.graph[operand.node];
      std::string note;
      if (graph.named.contains(operand.node)) {
        note = definition(node);
      } else if (!operand.text.empty() && operand.text.size() <= kMaxText) {
        const std::string shown = is_plain(operand.text) ? operand.text : "(" + operand.text + ")";
        replace_name(d.message, node.name, shown);
        replace_name(d.hint, node.name, shown);
      } else if (!operand.text.empty()) {
        note = fmt::format("{} is {}...", node.name, operand.text.substr(0, kMaxText));
      }
      if (!note.empty()) d.hint += (d.hint.empty() ? "" : "; ") + note;
    }
  }
  return Error(error.kind(), std::move(diagnostics));
}

}  // namespace graphrun::expression
