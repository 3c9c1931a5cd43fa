// expression.h: the expressions of the model file: "h1 = tanh(x @ W1 + b1)".
// Contract: parse() knows the grammar only; check() finds names, functions and attributes that do not exist, all of a
// text at once; build() adds the nodes, numbers folded as doubles. Every mistake is an ExpressionError with the byte of
// the text it stands at. Leaves to others: what functions do (functions.h), where the text stands (model_file.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
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

// The operators by how tightly they bind. Within a level a sign stands before those it begins with (<= before <); of
// two signs of an op the first is the canonical one.
struct Operator {
  std::string_view sign, op;
  int level;
};
inline constexpr int kNot = 3, kCompare = 4, kNegate = 7, kPower = 8, kPrimary = 9;
inline constexpr Operator kOperators[] = {
    {"or", "logical_or", 1},
    {"and", "logical_and", 2},
    {"not", "logical_not", kNot},  // before its operand, as is the sign
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
  std::size_t at = 0;  // of the key
  TermId value = 0;
};

struct Term {
  enum class Kind : std::uint8_t { number, name, text, list, call, unary, binary };
  Kind kind = Kind::number;
  bool literal = false;  // inside the value of an attribute, where no name means a node
  bool integer = false;  // a number written without point and exponent
  double number = 0;
  std::string word = {};                  // a name, the text, or the function or op that is called
  std::vector<TermId> operands = {};      // items of a list too
  std::vector<Argument> attributes = {};  // of a call
  std::size_t begin = 0, end = 0;         // the bytes it spans
  std::size_t at = 0;                     // where mistakes of it stand: an operator, a function's name
};

// Operands have smaller ids than what uses them, and the last term is the whole: no pass needs to recurse.
struct Expression {
  std::string text;
  std::string name;  // empty when the text assigns none
  std::vector<Term> terms;
};

inline constexpr int kMaxDepth = 64;

Expression parse(std::string_view text);
std::string assigned_name(std::string_view text);  // of "name = …", also when the rest is no expression; else ""

// What an expression may refer to beside the names of the graph.
struct Scope {
  GraphBuilder::Impl& graph;
  std::set<std::string, std::less<>> broken = {};              // definitions that were reported: their uses are not
  std::map<std::string, std::string, std::less<>> later = {};  // names defined further down, and where
  bool nameless = false;  // an entry that should have given a name was reported: it may be the one that is missed
  bool layers = false;    // whether a layer may be called, which brings parameters
  bool suggest = true;    // whether a hint is worth the search: of thousands of mistakes, few are shown
};

struct Findings {
  std::vector<ExpressionError> errors;  // the first kMaxDiagnostics
  std::size_t more = 0;                 // those that are counted only
  void add(ExpressionError error) {
    if (!full())
      errors.push_back(std::move(error));
    else
      ++more;
  }
  bool full() const { return errors.size() >= kMaxDiagnostics; }
  bool broken = false;  // it depends on a broken definition: it cannot be built, and that is no new mistake
};
Findings check(const Scope& scope, const Expression& expression);
// Whether a name is unknown for a reason that was reported.
bool excused(const Scope& scope, std::string_view name);
// The node a name stands for. Throws Error with the nearest name.
ir::NodeId resolve(const Scope& scope, std::string_view name);

// Of an expression that check() passed. Does not give the node its name.
ir::NodeId build(GraphBuilder::Impl& graph, const Expression& expression);

// Of "assign(m, x, after=true)", which gives no value.
struct StateAssignment {
  std::string state;
  std::size_t at = 0;  // of its name
  Expression value;
  bool after = false;
};
bool assigns_state(std::string_view text);  // whether it is meant as one
// Throws ExpressionError.
StateAssignment state_assignment(GraphBuilder::Impl& graph, const Expression& parsed);

// By term: the values of those in attributes; nothing for "none".
std::vector<std::optional<AttrValue>> literals(GraphBuilder::Impl& graph, const Expression& expression);

// Which attributes a text says: all of them, or those that are not as they would be without.
enum class Attributes : std::uint8_t { all, changed };

// The canonical text of an expression that was built: text(parse(text(e))) == text(e), and it builds the same nodes.
std::string text(GraphBuilder::Impl& graph, const Expression& expression, Attributes which = Attributes::all);
// ", axis=1, keepdims=false"
std::string attributes_text(const GraphBuilder::Impl& graph, const ir::AttrSchema& schema, const AttrList& given,
                            Attributes which = Attributes::all);

}  // namespace graphrun::expression
