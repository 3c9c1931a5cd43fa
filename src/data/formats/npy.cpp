#include "data/formats/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "base/input_limit.h"
#include "data/bytes.h"
#include "data/csv/missing.h"
#include "data/sources/sources.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

// The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (784, 256), }
class HeaderText {
 public:
  HeaderText(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorKind::input, "data.npy", fmt::format("'{}': {}", name_, what));
  }

  // Value of 'key', up to the comma that ends it (in a tuple, up to its parenthesis).
  std::string_view value(std::string_view key) const {
    const std::size_t at = text_.find(fmt::format("'{}'", key));
    std::size_t begin = at == std::string_view::npos ? at : text_.find(':', at + key.size() + 2);
    if (begin != std::string_view::npos) begin = text_.find_first_not_of(' ', begin + 1);
    if (begin == std::string_view::npos) fail(fmt::format("the NPY header has no '{}'", key));
    std::size_t end = text_.find_first_of(text_[begin] == '(' ? ")" : ",}", begin);
    if (end == std::string_view::npos) fail(fmt::format("the NPY header breaks off after '{}'", key));
    while (end > begin && text_[end - 1] == ' ') --end;
    return text_.substr(begin, end - begin);  // without the closing parenthesis
  }

  Shape shape() const {
    std::string_view text = value("shape");
    if (text.empty() || text[0] != '(') fail("the shape in the NPY header is not a tuple");
    Shape shape;
    const char *at = text.data() + 1, *end = text.data() + text.size();
    while (at != end) {
      if (*at == ' ' || *at == ',') {
        ++at;
        continue;
      }
      std::int64_t extent = 0;
      const std::from_chars_result result = std::from_chars(at, end, extent);
      if (result.ec != std::errc() || extent < 0) fail("the shape in the NPY header is damaged");
      if (shape.rank() == kMaxRank) fail(fmt::format("more than {} axes", kMaxRank));
      shape.push_back(extent);
      at = result.ptr;
    }
    return shape;
  }

 private:
  const std::string& name_;
  std::string_view text_;
};

// Integers wider than 32 bits become doubles. A value that a double cannot hold exactly is rejected, not rounded.
template <class From>
std::vector<double> exact_doubles(const HeaderText& header, std::string_view bytes, std::size_t at, std::size_t count,
                                  std::endian order) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const From value = number_at<From>(bytes, at + i * sizeof(From), order);
    values[i] = static_cast<double>(value);
    if (values[i] > 0x1p53 || values[i] < -0x1p53) header.fail(fmt::format("{} is too large an integer", value));
  }
  return values;
}

// Conversion table from file types to stored types; narrow types stay narrow.
using Values = decltype(Array::values);
struct Stored {
  std::string_view type;
  std::size_t width;  // bytes per element in memory
  Values (*values)(const HeaderText& text, std::string_view bytes, const NpyHeader& header);
};

template <class To, class From>
constexpr Stored stored(std::string_view type) {
  return {type, sizeof(To), [](const HeaderText&, std::string_view bytes, const NpyHeader& header) {
            return Values(numbers_at<To, From>(bytes, header.begin, header.count, header.order));
          }};
}

template <class From>
constexpr Stored stored_exactly(std::string_view type) {
  return {type, sizeof(double), [](const HeaderText& text, std::string_view bytes, const NpyHeader& header) {
            return Values(exact_doubles<From>(text, bytes, header.begin, header.count, header.order));
          }};
}

// Values of an array in Fortran order, whose first axis varies fastest, in C order.
template <class T>
std::vector<T> in_c_order(const std::vector<T>& values, const Shape& shape) {
  std::vector<T> result;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t from = 0, rest = i;
    for (int axis = shape.rank(); axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(shape[axis]);
      from = from * extent + rest % extent;
      rest /= extent;
    }
    result.push_back(values[from]);
  }
  return result;
}

const Stored* find_stored(std::string_view type) {
  static constexpr Stored kTypes[] = {
      stored<std::uint8_t, std::uint8_t>("u1"),
      stored<std::uint8_t, std::uint8_t>("b1"),
      stored<std::int32_t, std::int8_t>("i1"),
      stored<std::int32_t, std::int16_t>("i2"),
      stored<std::int32_t, std::uint16_t>("u2"),
      stored<std::int32_t, std::int32_t>("i4"),
      stored<double, std::uint32_t>("u4"),
      stored_exactly<std::int64_t>("i8"),
      stored_exactly<std::uint64_t>("u8"),
      stored<float, F16>("f2"),
      stored<float, BF16>("bf"),  // not a type of NumPy; of safetensors.cpp
      stored<float, float>("f4"),
      stored<double, double>("f8"),
  };
  for (const Stored& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

std::optional<std::uint64_t> credible_elements(const Shape& shape, std::uint64_t room) {
  const std::uint64_t most = std::max(room, std::uint64_t{1} << 32);
  std::uint64_t elements = 1;
  bool is_empty = false;
  for (const std::int64_t extent : shape.dims()) {
    const auto n = static_cast<std::uint64_t>(extent);
    if (n == 0) {
      is_empty = true;
    } else {
      if (elements > most / n) return std::nullopt;
      elements *= n;
    }
  }
  return is_empty ? 0 : elements;
}

NpyHeader parse_npy_header(const std::string& name, std::string_view bytes, std::uint64_t size) {
  const HeaderText nothing(name, {});
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") nothing.fail("not an NPY array");
  const char version = bytes[6];
  if (version < 1 || version > 3) nothing.fail(fmt::format("NPY version {} is not known", int{version}));
  const std::size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) nothing.fail("the NPY header is cut short");
  const std::size_t length = version == 1 ? number_at<std::uint16_t>(bytes, 8, std::endian::little)
                                          : number_at<std::uint32_t>(bytes, 8, std::endian::little);
  if (length > size - begin) nothing.fail("the NPY header is cut short");
  if (length > bytes.size() - begin) nothing.fail("the NPY header is longer than 64 KiB");
  const HeaderText text(name, bytes.substr(begin, length));

  std::string_view type = text.value("descr");
  if (type.size() != 5 || type.front() != '\'' || type.back() != '\'')
    text.fail(fmt::format("dtype {} is not supported", type));
  type = type.substr(1, 3);
  if (std::string_view("<>|=").find(type[0]) == std::string_view::npos || !find_stored(type.substr(1)))
    text.fail(fmt::format("dtype '{}' is not supported", type));
  NpyHeader header;
  header.begin = begin + length;
  header.order = type[0] == '>' ? std::endian::big : std::endian::little;
  header.type = type.substr(1);
  header.shape = text.shape();
  header.is_fortran = text.value("fortran_order") != "False" && header.shape.rank() > 1;
  const std::uint64_t room = size - header.begin, width = static_cast<std::uint64_t>(type[2] - '0');
  const std::optional<std::uint64_t> elements = credible_elements(header.shape, room);
  if (!elements || *elements > room / width || *elements * width != room) {
    text.fail(fmt::format("the NPY header says {} of '{}', but {} bytes of values follow", to_string(header.shape),
                          type, room));
  }
  if (*elements == 0 && header.shape[0] > 0) text.fail("its rows have no elements");
  header.count = *elements;
  return header;
}

Array read_values(const std::string& name, const std::string& what, std::string_view bytes, const NpyHeader& header) {
  const Stored& stored = *find_stored(header.type);
  require_within_input_limit(saturating_product(header.count, stored.width), what);
  Array array{header.shape, stored.values({name, {}}, bytes, header)};
  if (header.is_fortran) std::visit([&](auto& values) { values = in_c_order(values, header.shape); }, array.values);
  return array;
}

Array parse_npy(const std::string& name, std::string_view bytes) {
  return read_values(name, fmt::format("the array '{}'", name), bytes, parse_npy_header(name, bytes, bytes.size()));
}

Loaded read_npy(SourceContext& context) {
  Loaded loaded = read_files_by_key(context, [](const std::string& path) { return parse_npy(path, read_file(path)); });
  read_gaps(context, loaded.rows);
  return loaded;
}

Loaded read_npz(SourceContext& context) {
  Loaded loaded;
  const std::optional<std::string> name = context.reader.string(context.value);
  if (!name || !context.opens) {
    read_gaps(context, loaded.rows);
    return loaded;
  }
  const std::string path = context.files.find(*name);
  const auto npz = std::make_shared<const Npz>(path, context.files.read(path));
  Files* files = &context.files;
  for (const std::string& array : npz->names()) {
    loaded.rows.arrays.push_back({array, context.value, [files, npz, path, array] {
                                    return files->array(path + "/" + array,
                                                        [&](const std::string&) { return npz->read(array); });
                                  }});
  }
  read_gaps(context, loaded.rows);
  return loaded;
}

}  // namespace graphrun::data
