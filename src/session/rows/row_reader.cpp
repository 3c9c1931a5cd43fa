// row_reader.cpp: InputReader and load_inputs(): open a file or follow a pipe, and convert its rows to inputs.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/not_moved.h"
#include "data/csv/row_stream.h"
#include "data/formats/inflate.h"
#include "graphrun/error.h"
#include "graphrun/output_file.h"
#include "session/rows/inference_input.h"
#include "session/rows/labelled_rows.h"

namespace graphrun {
namespace {

std::string path_of(const std::string& path) {
  return path == "-" ? "/dev/stdin" : path;
}

void require_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return;
  const std::string near = nearest_file(path);
  throw Error(ErrorKind::input, "file.missing", fmt::format("no such file: '{}'", path),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

// A folder of images, or a file that is not a pipe.
bool is_regular(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) || std::filesystem::is_directory(path, ignored);
}

std::string head_of(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return "\x89PNG";
  return std::string(data::RowStream(path).look(kFormatBytes));
}

// Stores bytes in an unnamed file that exists while the descriptor is open.
Descriptor spooled(const std::string& bytes) {
  Descriptor file(::memfd_create("graphrun", MFD_CLOEXEC));
  if (file.number() >= 0 && write_all(file.number(), bytes)) return file;
  throw Error(ErrorKind::run, "file.read", "the data of the pipe does not fit in memory");
}

std::string path_of(const Descriptor& file) {
  return fmt::format("/proc/self/fd/{}", file.number());
}

// Copies data that must be complete and seekable: the contents of a pipe, or a compressed array (tables and IDX files
// are decompressed on reading).
std::optional<Descriptor> copy_of(const std::string& path, RowFormat format, std::optional<std::string> piped) {
  const bool is_plain_array = format == RowFormat::npy || format == RowFormat::npz;
  if (!piped && is_plain_array && data::is_gzip(head_of(path))) piped = read_file(path);
  if (!piped) return std::nullopt;
  return spooled(is_plain_array ? data::inflated_text(path, std::move(*piped)) : *piped);
}

HostTensor joined(const HostTensor& first, const HostTensor& more) {
  Shape shape = first.shape();
  shape[0] += more.shape()[0];
  HostTensor both(first.dtype(), shape);
  std::copy(first.bytes().begin(), first.bytes().end(), both.bytes().begin());
  std::copy(more.bytes().begin(), more.bytes().end(),
            both.bytes().begin() + static_cast<std::ptrdiff_t>(first.bytes().size()));
  return both;
}

}  // namespace

// ---- predictions

struct InputReader::Impl {
  Impl(const std::string& model, const std::string& file, const LoadOptions& options, InputOptions how)
      : path(path_of(file)), rows(model, options, InferenceInput::Purpose::predict), keep(std::move(how.keep)) {
    require_file(path);
    if (is_regular(path)) {
      format = format_of(path, head_of(path), how.format);
      copy = copy_of(path, format, std::nullopt);
      return;
    }
    stream.emplace(path);
    format = format_of(path, stream->look(1), how.format);
    // A magic number needs more than the first byte, but text is recognized by it.
    const bool may_be_text = !stream->look(1).empty() && format != RowFormat::idx && !is_magic(stream->look(1).front());
    if (!may_be_text) format = format_of(path, stream->look(kFormatBytes), how.format);
    const bool is_text = may_be_text && (format == RowFormat::csv || format == RowFormat::records);
    const bool is_array = format == RowFormat::records && starts_with_bracket();
    if (!is_text || is_array || !rows.batch_dependent_output().empty() || rows.window_length() > 0) {
      std::string bytes = stream->read_all();
      format = format_of(path, std::string_view(bytes).substr(0, kFormatBytes), how.format);
      copy = copy_of(path, format, std::move(bytes));
      stream.reset();
    } else if (format == RowFormat::csv) {
      const data::Dialect dialect = rows.dialect(path);
      stream->cut_as_csv(dialect.delimiter, dialect.header, dialect.comment);
    } else {
      stream->cut_as_lines();
    }
  }

  static bool is_magic(char first) {
    return first == '\0' || first == '\x1f' || first == '\x89' || first == '\x93' || first == 'P';
  }
  bool starts_with_bracket() { return stream->look(1) == "["; }

  std::optional<InputRows> next() {
    if (at_end) return std::nullopt;
    std::optional<data::Chunk> chunk;
    if (stream) {
      chunk = stream->next(last);
      at_end = chunk->bytes.empty();
      if (at_end && given > 0) return std::nullopt;
    } else {
      at_end = true;
    }
    InferenceInput::Read read = rows.read(path, copy ? path_of(*copy) : path, format, chunk, keep);
    InputRows result{std::move(read.inputs), std::move(read.kept), std::move(read.far), rows.window_length(),
                     read.target_row};
    if (result.window_length > 0) result.feeds = rows.feeds();
    last = static_cast<std::size_t>(result.rows());
    given += last;
    return result;
  }

  std::string path;
  InferenceInput rows;
  std::vector<std::string> keep;
  RowFormat format = RowFormat::csv;
  std::optional<data::RowStream> stream;
  std::optional<Descriptor> copy;
  std::size_t last = 0, given = 0;
  bool at_end = false;
};

InputReader::InputReader(const std::string& model, const std::string& path, const LoadOptions& options,
                         const InputOptions& how)
    : impl_(std::make_unique<Impl>(model, path, options, how)) {}
InputReader::~InputReader() = default;
InputReader::InputReader(InputReader&&) noexcept = default;
InputReader& InputReader::operator=(InputReader&&) noexcept = default;

std::optional<InputRows> InputReader::next() {
  return not_moved(impl_, "input reader").next();
}

bool InputReader::streams() const {
  return not_moved(impl_, "input reader").stream.has_value();
}

std::vector<std::pair<std::string, HostTensor>> load_inputs(const std::string& model, const std::string& path,
                                                            const LoadOptions& options) {
  InputReader reader(model, path, options);
  std::vector<std::pair<std::string, HostTensor>> all;
  while (std::optional<InputRows> rows = reader.next()) {
    if (all.empty()) {
      all = std::move(rows->inputs);
      continue;
    }
    for (std::size_t i = 0; i < all.size(); ++i) all[i].second = joined(all[i].second, rows->inputs[i].second);
  }
  return all;
}

// ---- evaluations

DataSet labelled_rows(const std::string& model, const LoadOptions& options) {
  const std::string path = path_of(options.evaluates);
  require_file(path);
  InferenceInput rows(model, options, InferenceInput::Purpose::evaluate);
  std::optional<std::string> piped;
  if (!is_regular(path)) piped = data::RowStream(path).read_all();
  const std::string head = piped ? piped->substr(0, kFormatBytes) : head_of(path);
  const RowFormat format = format_of(path, head, options.format);
  const std::optional<Descriptor> copy = copy_of(path, format, std::move(piped));
  InferenceInput::Read read = rows.read(path, copy ? path_of(*copy) : path, format, std::nullopt, {});
  DataSet set;
  set.splits.push_back({"data", std::move(read.inputs), 0});
  set.splits.back().windows = std::move(read.windows);
  set.standardizations = std::move(read.standardizations);
  set.fitted = rows.weights().fitted;
  set.provenance = rows.weights().provenance;
  set.warnings = std::move(read.warnings);
  set.files = {path};
  return set;
}

}  // namespace graphrun
