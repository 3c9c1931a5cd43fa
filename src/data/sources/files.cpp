#include "data/sources/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "data/csv/dates.h"
#include "data/sources/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace fs = std::filesystem;

const NamedArray* Table::find(const std::string& name) const {
  if (index_.empty()) {
    index_.reserve(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) index_.emplace(arrays[i].name, i);
  }
  const auto found = index_.find(name);
  if (found != index_.end()) return &arrays[found->second];
  if (const auto made = gathered.find(name); made != gathered.end()) return &made->second;
  return of_dates(name);
}

namespace {

// Whether the text is three numbers, such as 31.02.2023.
bool has_form_of_date(std::string_view text) {
  const std::string_view signs = text.substr(0, text.find_first_of(" T"));
  const auto is_separator = [](char c) { return c == '.' || c == '/' || c == '-'; };
  return signs.find_first_not_of("0123456789./-") == std::string_view::npos &&
         std::ranges::count_if(signs, is_separator) == 2 && !is_separator(signs.front()) && !is_separator(signs.back());
}

// Cells of a date column, converted with a function of dates.h.
class DateCells final : public Cells {
 public:
  DateCells(std::shared_ptr<const Cells> cells, std::size_t function, DateOrder order)
      : cells_(std::move(cells)), function_(function), order_(order) {}

  std::int64_t rows() const override { return cells_->rows(); }
  bool is_missing(std::int64_t row) const override { return cells_->is_missing(row); }
  std::string_view text(std::int64_t row) const override { return cells_->text(row); }
  double number(std::int64_t row) const override {
    const std::string_view text = cells_->text(row);
    if (const std::optional<double> number = date_number(text, function_, order_)) return *number;
    if (!is_date(text))
      fail(
          row, fmt::format("'{}' is not a date", text.substr(0, 40)),
          has_form_of_date(text) ? "there is no such day in the calendar" : "a date is written as in 2024-02-29T12:30");
    const char* hint = "\"dates\": \"dd/mm/yyyy\" or \"dates\": \"mm/dd/yyyy\" next to the file name sets the order";
    if (order_ != DateOrder::unknown)
      fail(row, fmt::format("'{}' has another order of day and month than the column", text), hint);
    decide();
    if (order_ == DateOrder::unknown)
      fail(row, fmt::format("'{}' may be dd/mm/yyyy or mm/dd/yyyy, and no date of the column decides it", text), hint);
    return number(row);
  }
  Error error(std::int64_t row, std::string_view what, std::string hint) const override {
    return cells_->error(row, what, std::move(hint));
  }

 private:
  // A date of which one of the numbers exceeds 12 decides for the whole column.
  void decide() const {
    for (std::int64_t row = 0; row < rows() && order_ == DateOrder::unknown; ++row) {
      const std::string_view text = cells_->text(row);
      if (is_missing(row) || !is_date(text)) continue;
      if (!is_date(text, DateOrder::month_first)) order_ = DateOrder::day_first;
      if (!is_date(text, DateOrder::day_first)) order_ = DateOrder::month_first;
    }
  }

  std::shared_ptr<const Cells> cells_;
  std::size_t function_;
  mutable DateOrder order_;
};

}  // namespace

const NamedArray* Table::of_dates(const std::string& name) const {
  const std::span<const Doc> functions = date_functions();
  const std::size_t open = name.find('(');
  if (open == std::string::npos || name.back() != ')') return nullptr;
  const auto function = std::find_if(functions.begin(), functions.end(),
                                     [&](const Doc& doc) { return name.compare(0, open, doc.name) == 0; });
  const auto column = index_.find(name.substr(open + 1, name.size() - open - 2));
  if (function == functions.end() || column == index_.end()) return nullptr;
  const NamedArray& dates = arrays[column->second];
  if (!dates.cells) return nullptr;
  const auto cells = std::make_shared<const DateCells>(
      dates.cells, static_cast<std::size_t>(function - functions.begin()), date_order);
  NamedArray made = column_of(name, dates.place, cells, dates.missing);
  made.made_of = &dates;
  return &of_dates_.try_emplace(name, std::move(made)).first->second;
}

std::vector<std::string> Table::names() const {
  return names_of(arrays);
}

Files::Files(const DataOptions& options) : on_progress_(options.on_progress) {
  const char* environment = std::getenv("GRAPHRUN_DATA");
  for (const std::string& folder : {options.model_dir, options.data_dir, std::string(environment ? environment : "")}) {
    if (!folder.empty()) folders_.push_back(folder);
  }
}

std::string Files::find(const std::string& name, Find what) {
  const auto is_file = [what](const fs::path& path) {  // includes pipes
    std::error_code error;
    return fs::exists(path, error) && (what == Find::folder_too || !fs::is_directory(path, error));
  };
  if (name == "-") return "/dev/stdin";
  std::vector<std::string> tried = folders_;
  if (fs::path(name).is_absolute()) tried = {fs::path(name).parent_path().string()};
  std::string nearest, hint = "paths are relative to the model file, --data-dir or GRAPHRUN_DATA";
  for (std::string& folder : tried) {
    const fs::path path = fs::path(folder) / name;  // an absolute name replaces the folder
    const fs::path bare = fs::path(folder) / fs::path(name).filename();
    folder = path.string();
    if (is_file(path)) {
      found_.push_back(path.string());
      return path.string();
    }
    if (nearest.empty()) nearest = nearest_file(path.string());
    if (is_file(bare)) hint = fmt::format("'{}' exists, but the model file says '{}'", bare.string(), name);
  }
  throw Error(ErrorKind::input, "data.file_not_found",
              tried.empty() ? fmt::format("data file '{}' not found: there is no folder to look in", name)
                            : fmt::format("data file '{}' not found; tried {}", name, fmt::join(tried, ", ")),
              nearest.empty() ? hint : fmt::format("did you mean '{}'?", nearest));
}

Chunk Files::read_chunk(const std::string& path) {
  const auto chunk = chunks_.find(path);
  return chunk != chunks_.end() ? chunk->second : Chunk{read(path)};
}

std::string Files::read(const std::string& path) {
  report_progress(fmt::format("reading '{}'", path));
  std::error_code error;
  if (fs::is_regular_file(path, error)) return read_file(path);
  const auto kept = pipes_.find(path);
  return kept != pipes_.end() ? kept->second : pipes_.emplace(path, read_file(path)).first->second;
}

void Files::warn(std::string text) {
  if (warned_.insert(text).second) warnings_.push_back(std::move(text));
}

ArrayPtr Files::array(const std::string& path, const std::function<Array(const std::string& path)>& read) {
  ArrayPtr& array = read_[path];
  if (!array) array = std::make_shared<const Array>(read(path));
  return array;
}

}  // namespace graphrun::data
