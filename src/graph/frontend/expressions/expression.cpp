// expression.cpp: the parser, from characters to terms. expression_build.cpp turns terms into nodes.
#include "graph/frontend/expressions/expression.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <unordered_set>

namespace graphrun::expression {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

std::string_view name_at(std::string_view text, std::size_t at) {
  if (at >= text.size() || !is_name_start(text[at])) return {};
  std::size_t end = at;
  while (end < text.size() && is_name_part(text[end])) ++end;
  return text.substr(at, end - at);
}

// Offset of the expression after "name =", and the name; {0, ""} if the text is not an assignment.
std::pair<std::size_t, std::string_view> assignment(std::string_view text) {
  const std::size_t begin = skip_spaces(text, 0);
  const std::string_view name = name_at(text, begin);
  const std::size_t equals = skip_spaces(text, begin + name.size());
  if (name.empty() || equals >= text.size() || text[equals] != '=') return {0, {}};
  if (equals + 1 < text.size() && text[equals + 1] == '=') return {0, {}};
  return {equals + 1, name};
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expression parse() {
    const auto [begin, name] = assignment(text_);
    out_.text = text_;
    out_.name = name;
    at_ = begin;
    expression();
    spaces();
    if (at_ < text_.size()) fail_here("expected an operator or the end");
    return std::move(out_);
  }

 private:
  // Limits recursion: counts each (, [, prefix operator and ^, but not the levels of binary operators.
  struct Nested {
    explicit Nested(Parser& owner) : parser(owner) {
      if (++parser.depth_ > kMaxDepth) {
        throw ExpressionError(parser.at_, "expression.depth", fmt::format("nested deeper than {} levels", kMaxDepth),
                              "define a part of it as a value of its own");
      }
    }
    ~Nested() { --parser.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    Parser& parser;
  };

  void spaces() { at_ = skip_spaces(text_, at_); }

  bool accept(std::string_view sign) {
    spaces();
    if (text_.substr(at_, sign.size()) != sign) return false;
    if (is_name_start(sign[0]) && name_at(text_, at_) != sign) return false;  // "order" is not "or"
    at_ += sign.size();
    return true;
  }

  [[noreturn]] void fail_here(std::string_view expectation) {
    if (at_ >= text_.size()) {
      throw ExpressionError(text_.size(), "expression.syntax", fmt::format("{}, got the end of the text", expectation));
    }
    std::string hint;
    const std::string_view rest = text_.substr(at_);
    const std::string_view before = text_.substr(0, at_);
    if (rest[0] == '[') hint = "format 1 has no subscript; slice(…) takes parts";
    if (rest[0] == '=') hint = rest.substr(0, 2) == "==" ? "" : "== compares; one name is assigned at the beginning";
    if (rest[0] == '&' || rest[0] == '|' || rest[0] == '!') hint = "logic is written and, or, not";
    if (static_cast<unsigned char>(rest[0]) >= 0x80) hint = "operators are plain: + - * / @ % ^";
    if (is_name_start(rest[0]) && !before.empty() && is_digit(before.back())) hint = "a product is written with *";
    std::size_t length = 1;  // includes all bytes of a UTF-8 character
    while (length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xc0u) == 0x80u) ++length;
    const std::string_view word = is_name_start(rest[0]) ? name_at(rest, 0) : rest.substr(0, length);
    throw ExpressionError(at_, "expression.syntax", fmt::format("{}, got '{}'", expectation, word), hint);
  }

  void expect(std::string_view sign, std::string_view expectation) {
    if (!accept(sign)) fail_here(expectation);
  }

  TermId push(Term term) {
    term.literal = literal_;
    out_.terms.push_back(std::move(term));
    return static_cast<TermId>(out_.terms.size() - 1);
  }

  // Adds a unary or binary term; `begin` is the start of its text.
  TermId operation(std::string_view op, std::size_t at, std::size_t begin, std::vector<TermId> operands) {
    const auto kind = operands.size() == 1 ? Term::Kind::unary : Term::Kind::binary;
    const std::size_t end = out_.terms[operands.back()].end;
    return push(
        {.kind = kind, .word = std::string(op), .operands = std::move(operands), .begin = begin, .end = end, .at = at});
  }

  const Operator* accept_of(int level) {
    for (const Operator& o : kOperators) {
      if (o.level != level) continue;
      // Keeps "**" from being read as "*".
      if (o.sign == "*" && text_.substr(skip_spaces(text_, at_), 2) == "**") continue;
      if (accept(o.sign)) return &o;
    }
    return nullptr;
  }

  // Parses operators that bind at least as tightly as `level`.
  TermId expression(int level = 1) {
    if (level == kPrimary) return primary();
    if (level == kNot || level == kNegate) {
      const Operator* found = accept_of(level);
      if (!found) return expression(level + 1);
      const std::size_t at = at_ - found->sign.size();
      const Nested nested(*this);
      return operation(found->op, at, at, {expression(level)});
    }
    TermId left = expression(level + 1);
    const std::size_t begin = out_.terms[left].begin;
    while (const Operator* found = accept_of(level)) {
      const std::size_t at = at_ - found->sign.size();
      if (level == kPower) {
        const Nested nested(*this);
        return operation(found->op, at, begin, {left, expression(kNegate)});  // the exponent may be signed: x^-2
      }
      left = operation(found->op, at, begin, {left, expression(level + 1)});
      if (level != kCompare) continue;
      if (const Operator* second = accept_of(level)) {
        throw ExpressionError(at_ - second->sign.size(), "expression.syntax", "comparisons do not chain",
                              "write a < b and b < c");
      }
    }
    return left;
  }

  TermId primary() {
    spaces();
    if (at_ >= text_.size()) fail_here("expected a value");
    const char c = text_[at_];
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number();
    if (c == '(') return parenthesis();
    if (c == '[') return list();
    if (literal_ && (c == '"' || c == '\'')) return quoted(Term::Kind::text);
    if (c == '`' || c == '\'') return quoted(Term::Kind::name);  // a column name with spaces
    const std::string_view name = name_at(text_, at_);
    if (name.empty() || name == "and" || name == "or" || name == "not") fail_here("expected a value");
    return name_or_call(name);
  }

  TermId number() {
    Term term{.kind = Term::Kind::number, .begin = at_, .at = at_};
    const auto [end, problem] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), term.number);
    term.end = static_cast<std::size_t>(end - text_.data());
    if (problem == std::errc::result_out_of_range || !std::isfinite(term.number)) {
      throw ExpressionError(at_, "expression.number", "the number is out of range");
    }
    const std::string_view digits = text_.substr(at_, term.end - at_);
    term.integer = digits.find_first_of(".eE") == std::string_view::npos;
    if (term.integer && term.number >= 0x1p53) {
      throw ExpressionError(at_, "expression.number", "the integer is not below 2^53: it would be rounded",
                            "with a point or an exponent it is a number that may be rounded");
    }
    at_ = term.end;
    if (at_ < text_.size() && (is_name_part(text_[at_]))) fail_here("expected an operator after the number");
    return push(std::move(term));
  }

  TermId parenthesis() {
    const std::size_t begin = at_++;
    const Nested nested(*this);
    const TermId inner = expression();
    expect(")", "expected ) or an operator");
    out_.terms[inner].begin = begin;
    out_.terms[inner].end = at_;
    return inner;
  }

  TermId list() {
    Term term{.kind = Term::Kind::list, .begin = at_, .at = at_};
    ++at_;
    const Nested nested(*this);
    if (!accept("]")) {
      do {
        term.operands.push_back(expression());
      } while (accept(","));
      expect("]", "expected , or ] in the list");
    }
    term.end = at_;
    return push(std::move(term));
  }

  TermId quoted(Term::Kind kind) {
    Term term{.kind = kind, .begin = at_, .at = at_};
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) throw ExpressionError(at_, "expression.syntax", "the quote is not closed");
    term.word = text_.substr(at_ + 1, end - at_ - 1);
    term.end = at_ = end + 1;
    return push(std::move(term));
  }

  TermId name_or_call(std::string_view name) {
    Term term{.kind = Term::Kind::name, .word = std::string(name), .begin = at_, .at = at_};
    at_ += name.size();
    term.end = at_;
    if (!accept("(")) {
      at_ = term.end;
      return push(std::move(term));
    }
    term.kind = Term::Kind::call;
    const Nested nested(*this);
    if (!accept(")")) {
      std::unordered_set<std::string_view> keys;
      do {
        argument(term, keys);
      } while (accept(","));
      expect(")", "expected , or ) in the call");
    }
    term.end = at_;
    return push(std::move(term));
  }

  void argument(Term& call, std::unordered_set<std::string_view>& keys) {
    spaces();
    const std::string_view rest = text_.substr(at_);
    const auto [value, key] = assignment(rest);
    if (key.empty()) {
      if (!call.attributes.empty()) {
        throw ExpressionError(at_, "expression.syntax", "operands come before attributes");
      }
      call.operands.push_back(expression());
      return;
    }
    Argument argument{.key = std::string(key), .at = at_};
    if (!keys.insert(key).second) {
      throw ExpressionError(at_, "expression.syntax", fmt::format("{} is given twice", key));
    }
    at_ += value;
    const bool outer = std::exchange(literal_, true);
    argument.value = expression();
    literal_ = outer;
    call.attributes.push_back(std::move(argument));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool literal_ = false;
  Expression out_;
};

}  // namespace

Expression parse(std::string_view text) {
  return Parser(text).parse();
}

std::string assigned_name(std::string_view text) {
  return std::string(assignment(text).second);
}

}  // namespace graphrun::expression
