// expression.h: the expressions of the model file: "h1 = tanh(x @ W1 + b1)".
// Contract: parse() checks only the grammar; check() finds all unknown names, functions and attributes of a text;
// build() adds the nodes and folds numbers as doubles. Every error is an ExpressionError with its byte offset in the
// text. Defined elsewhere: functions (functions.h), the position of the text in the file (model_file.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/frontend/builder_impl.h"
#include "graphrun/error.h"

namespace graphrun::expression {

class ExpressionError : public Error {
 public:
  ExpressionError(std::size_t where, std::string code, std::string message, std::string hint = {})
      : Error(ErrorKind::input, std::move(code), std::move(message), std::move(hint)), offset(where) {}
  ExpressionError(std::size_t where, const Error& error) : Error(error), offset(where) {}
  std::size_t offset;  // from 0, in bytes
};

// The operators in order of precedence, loosest first. Within a level, a sign precedes its own prefixes (<= before <).
// If an op has two signs, the first is canonical.
struct Operator {
  std::string_view sign, op;
  int level;
};
inline constexpr int kNot = 3, kCompare = 4, kNegate = 7, kPower = 8, kPrimary = 9;
inline constexpr Operator kOperators[] = {
    {"or", "logical_or", 1},
    {"and", "logical_and", 2},
    {"not", "logical_not", kNot},  // a prefix operator, like unary minus
    {"==", "equal", kCompare},
    {"!=", "not_equal", kCompare},
    {"<=", "less_equal", kCompare},
    {">=", "greater_equal", kCompare},
    {"<", "less", kCompare},
    {">", "greater", kCompare},
    {"+", "add", 5},
    {"-", "sub", 5},
    {"*", "mul", 6},
    {"/", "div", 6},
    {"@", "matmul", 6},
    {"%", "mod", 6},
    {"-", "neg", kNegate},
    {"^", "pow", kPower},
    {"**", "pow", kPower},
};

using TermId = std::uint32_t;

struct Argument {
  std::string key;
  std::size_t at = 0;  // offset of the key
  TermId value = 0;
};

struct Term {
  enum class Kind : std::uint8_t { number, name, text, list, call, unary, binary };
  Kind kind = Kind::number;
  bool literal = false;  // inside an attribute value, where names are not nodes
  bool integer = false;  // a number without decimal point or exponent
  double number = 0;
  std::string word = {};                  // name, text, or called function or op
  std::vector<TermId> operands = {};      // or items of a list
  std::vector<Argument> attributes = {};  // keyword arguments of a call
  std::size_t begin = 0, end = 0;         // byte range
  std::size_t at = 0;                     // offset for errors: the operator or function name
};

// Operands have smaller ids than their users, and the last term is the root: no pass needs to recurse.
struct Expression {
  std::string text;
  std::string name;  // empty if the text is not an assignment
  std::vector<Term> terms;
};

inline constexpr int kMaxDepth = 64;

Expression parse(std::string_view text);
std::string assigned_name(std::string_view text);  // from "name = …", even if the rest is invalid; else ""

// The names that an expression may refer to, and context for error messages.
struct Scope {
  GraphBuilder::Impl& graph;
  std::set<std::string, std::less<>> broken = {};  // already reported definitions; their uses are not reported
  std::map<std::string, std::string, std::less<>> later = {};  // names defined further down, and their places
  bool nameless = false;  // a reported entry lost its name: an unknown name may be that one
  bool layers = false;    // whether layers, which add parameters, may be called
  bool suggest = true;    // whether to search for hints: only the first of many errors are shown
};

struct Findings {
  std::vector<ExpressionError> errors;  // the first kMaxDiagnostics
  std::size_t more = 0;                 // count of further errors
  void add(ExpressionError error) {
    if (!full())
      errors.push_back(std::move(error));
    else
      ++more;
  }
  bool full() const { return errors.size() >= kMaxDiagnostics; }
  bool broken = false;  // depends on a broken definition: cannot be built, already reported
};
Findings check(const Scope& scope, const Expression& expression);
// Whether an already reported error explains that the name is unknown.
bool excused(const Scope& scope, std::string_view name);
// Looks up the node of a name. Throws Error with the nearest name.
ir::NodeId resolve(const Scope& scope, std::string_view name);

// Builds an expression that passed check(). The caller names the node.
ir::NodeId build(GraphBuilder::Impl& graph, const Expression& expression);

// Parsed "assign(m, x, after=true)", which has no value.
struct StateAssignment {
  std::string state;
  std::size_t at = 0;  // offset of its name
  Expression value;
  bool after = false;
};
bool assigns_state(std::string_view text);  // whether the text is an assign(…), valid or not
// Throws ExpressionError.
StateAssignment state_assignment(GraphBuilder::Impl& graph, const Expression& parsed);

// Values of attribute terms, indexed by term; nullopt for other terms and for "none".
std::vector<std::optional<AttrValue>> literals(GraphBuilder::Impl& graph, const Expression& expression);

// Attributes in a text: all of them, or those that differ from their defaults.
enum class Attributes : std::uint8_t { all, changed };

// Canonical text of an expression that was built: text(parse(text(e))) == text(e), and both build the same nodes.
std::string text(GraphBuilder::Impl& graph, const Expression& expression, Attributes which = Attributes::all);
// ", axis=1, keepdims=false"
std::string attributes_text(const GraphBuilder::Impl& graph, const ir::AttrSchema& schema, const AttrList& given,
                            Attributes which = Attributes::all);

// Notes on the operands of a shape error (operand_notes.cpp): where each is defined, or its text in the expression.
struct OperandNote {
  ir::NodeId node = ir::kNoNode;
  std::string text;  // for an operand without a name: "x @ W"
};

// The attribute that the error refers to, in the user's spelling if it was given; "" if there is none.
std::string attribute_at_fault(const Error& error, const std::vector<std::string>& given);

// Errors that do not concern shapes or dtypes pass unchanged.
Error with_notes(const GraphBuilder::Impl& graph, std::span<const OperandNote> operands, const Error& error);

}  // namespace graphrun::expression
