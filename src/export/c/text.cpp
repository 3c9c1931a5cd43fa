#include "export/c/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graphrun/elements.h"
#include "graphrun/error.h"

namespace graphrun::c99 {
namespace {

constexpr std::size_t kColumns = 118;

// Keywords of C99 and C++ (a C++ program may include the code), and names that the generated functions use for
// arguments and counters.
constexpr std::string_view kWords[] = {
    "auto",       "break",    "case",     "char",     "const",    "continue",  "default",   "do",        "double",
    "else",       "enum",     "extern",   "float",    "for",      "goto",      "if",        "inline",    "int",
    "long",       "register", "restrict", "return",   "short",    "signed",    "sizeof",    "static",    "struct",
    "switch",     "typedef",  "union",    "unsigned", "void",     "volatile",  "while",     "_Bool",     "_Complex",
    "_Imaginary", "asm",      "arena",    "main",     "bool",     "true",      "false",     "NAN",       "INFINITY",
    "NULL",       "errno",    "stdin",    "stdout",   "stderr",   "linux",     "unix",      "alignas",   "alignof",
    "and",        "bitand",   "bitor",    "catch",    "class",    "compl",     "concept",   "constexpr", "decltype",
    "delete",     "explicit", "export",   "friend",   "module",   "mutable",   "namespace", "new",       "noexcept",
    "not",        "nullptr",  "operator", "or",       "private",  "protected", "public",    "requires",  "template",
    "this",       "throw",    "try",      "typeid",   "typename", "using",     "virtual",   "xor",
};

template <class T>
std::string element(T value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return value != 0 ? "1" : "0";
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return value == std::numeric_limits<T>::min() ? "(-2147483647 - 1)" : fmt::format("{}", value);
  } else if constexpr (std::is_integral_v<T>) {
    return fmt::format("{}u", value);
  } else {
    if (std::isnan(value)) return "NAN";
    if (std::isinf(value)) return value > 0 ? "INFINITY" : "-INFINITY";
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return std::is_same_v<T, float> ? text + "f" : text;
  }
}

}  // namespace

std::string identifier(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    name += kept ? c : '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9') || name[0] == '_') name = "v" + name;
  if (name.size() > 60) name.resize(60);
  return name;
}

std::string Names::unique(std::string_view text) {
  const std::string wanted = identifier(text);
  const bool is_word = std::find(std::begin(kWords), std::end(kWords), wanted) != std::end(kWords);
  // i0, i1, ... are loop counters.
  const bool is_counter = wanted.size() == 2 && wanted[0] == 'i' && wanted[1] >= '0' && wanted[1] <= '9';
  std::string name = is_word || is_counter ? wanted + "_" : wanted;
  for (int number = 2; !taken_.insert(name).second; ++number) name = fmt::format("{}_{}", wanted, number);
  return name;
}

std::string_view type_name(DType dtype) {
  constexpr std::string_view kNames[] = {"float", "double", "int32_t", "uint64_t", "uint8_t"};
  return kNames[static_cast<std::size_t>(dtype)];
}

std::string literal(double value) {
  return element(value);
}

std::string elements(const HostTensor& tensor) {
  return with_elements(tensor, [](auto values) {
    std::string text, line = "    ";
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string next = element(values[i]) + (i + 1 < values.size() ? ", " : "");
      if (line.size() + next.size() > kColumns) {
        while (line.back() == ' ') line.pop_back();
        text += line + "\n";
        line = "    ";
      }
      line += next;
    }
    return text + line;
  });
}

std::string comment_text(std::string_view text) {
  std::string result = printable(text);
  for (std::size_t i = 0; i + 1 < result.size(); ++i) {
    const bool ends = result[i] == '*' && result[i + 1] == '/', begins = result[i] == '/' && result[i + 1] == '*';
    if (ends || begins) result[i + 1] = ' ';
  }
  for (char& c : result)
    if (c == '?' || c == '\\') c = '_';  // avoids trigraphs and line continuations
  return result;
}

std::string string_literal(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '?';
    result += is_plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return result + '"';
}

}  // namespace graphrun::c99
