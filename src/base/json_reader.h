// json_reader.h: reads a JSON document strictly and reports all its errors in one pass.
// Contract: a Reader collects diagnostics and continues; throw_if_failed() ends the pass. An ObjectReader reports each
// unread key, with the closest known name. A getter returns nothing if the key is absent or its value was reported.
// Time and memory are linear in the document for any number of errors: the first kMaxDiagnostics are stored, the rest
// counted. Codes: model.type, model.range, model.missing_key, model.unknown_key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/source_text.h"
#include "graphrun/error.h"

namespace graphrun::json {

// A value and its JSON pointer.
struct Ref {
  const Value* value = nullptr;
  std::string pointer;

  Ref item(std::size_t index) const;
  Ref member(const Member& member) const;
};

class Reader {
 public:
  explicit Reader(const Document& document) : document_(document), lines_(document.text, document.first_line) {}

  Ref root() const { return {&document_.root, ""}; }
  const Document& document() const { return document_; }

  void report(const Ref& at, std::string code, std::string message, std::string hint = {});
  // The position is character `offset` (from 0, in decoded bytes) of the string value `at`.
  void report_inside(const Ref& at, std::size_t offset, std::string code, std::string message, std::string hint = {});
  void report_key(const Ref& object, const Member& member, std::string code, std::string message,
                  std::string hint = {});
  // Reports an Error of another layer about the value at `at`; keeps the error's own positions and file names.
  void report(const Ref& at, const Error& error);
  void report_inside(const Ref& at, std::size_t offset, const Error& error);

  void report_more(std::size_t errors) { more_ += errors; }  // adds errors counted elsewhere

  // Replaces diagnostic `index` (as errors() counts) by the one reported last.
  void supersede(std::size_t index);

  bool failed() const { return errors() > 0; }
  std::size_t errors() const { return diagnostics_.size() + more_; }
  // If true, further errors are only counted, so a caller can skip the search for a hint.
  bool full() const { return diagnostics_.size() >= kMaxDiagnostics; }
  void throw_if_failed() const;  // Error of kind input, sorted by line and column

  // Conversions that report and return nothing on a mismatch.
  std::optional<std::string> string(const Ref& at);
  std::optional<bool> boolean(const Ref& at);
  std::optional<double> number(const Ref& at);
  std::optional<std::int64_t> integer(const Ref& at, std::int64_t low, std::int64_t high);
  std::optional<std::vector<double>> numbers(const Ref& at);  // an array of numbers

 private:
  const Document& document_;
  SourceLines lines_;
  std::vector<Diagnostic> diagnostics_;
  std::size_t more_ = 0;

  bool keeps();  // counts the error if the list is full
  void add(Diagnostic diagnostic, const std::string& pointer, std::size_t offset);
  void add_inside(const Ref& at, std::size_t offset_in_string, Diagnostic diagnostic);
  std::size_t offset(const Ref& at);  // offset in the text
  std::size_t offset(const Ref& at, std::size_t inside);
};

class ObjectReader {
 public:
  ObjectReader(Reader& reader, const Ref& object);  // reports a value that is not an object; then every key is absent

  const Ref& place() const { return object_; }
  bool is_object() const { return object_.value->kind == Kind::object; }
  std::optional<Ref> get(std::string_view key);  // marks the key as known
  const Member* find(std::string_view key);      // in constant time; does not mark the key as known
  // Reports a missing key; the hint describes it.
  std::optional<Ref> require(std::string_view key, std::string_view hint = {});
  void report_missing(std::string_view key, std::string code, std::string message, std::string_view hint = {});

  std::optional<std::string> string(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<double> number(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high);

  void also_known(std::vector<std::string> keys);  // extra keys for suggestions that need not have been read
  std::vector<const Member*> unread() const;       // unread members, for open objects
  // Reports unknown keys. An unknown key close to a missing required key is reported as a single error.
  void finish();

 private:
  Reader& reader_;
  Ref object_;
  std::vector<std::string> known_;  // keys read, in order
  std::unordered_set<std::string> asked_;
  std::unordered_map<std::string_view, const Member*> index_;  // for large objects
  std::vector<std::pair<std::string, std::size_t>> missing_;   // missing required keys and their diagnostics
  std::vector<std::string> also_known_;
};

}  // namespace graphrun::json
