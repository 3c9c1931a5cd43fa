#include "data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/file.h"
#include "data/bytes.h"
#include "data/sources.h"
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

  // What stands after 'key': up to the comma that ends it (in a tuple, up to its parenthesis).
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
    if (text.empty() || text[0] != '(') fail("the shape in the NPY header is no tuple");
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

// Integers of more than 32 bits are kept as doubles; what a double cannot hold exactly is refused, not rounded.
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

// How many elements a shape has; nothing when they cannot lie in `room` bytes. An extent of 0 hides no overflow.
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

}  // namespace

Array parse_npy(const std::string& name, std::string_view bytes) {
  const HeaderText nothing(name, {});
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") nothing.fail("not an NPY array");
  const char version = bytes[6];
  if (version < 1 || version > 3) nothing.fail(fmt::format("NPY version {} is not known", int{version}));
  const std::size_t begin = version == 1 ? 10 : 12;
  if (bytes.size() < begin) nothing.fail("the NPY header is cut short");
  const std::size_t length = version == 1 ? number_at<std::uint16_t>(bytes, 8, std::endian::little)
                                          : number_at<std::uint32_t>(bytes, 8, std::endian::little);
  if (length > bytes.size() - begin) nothing.fail("the NPY header is cut short");
  const HeaderText header(name, bytes.substr(begin, length));
  const std::size_t at = begin + length;

  std::string_view type = header.value("descr");
  if (type.size() != 5 || type.front() != '\'' || type.back() != '\'')
    header.fail(fmt::format("dtype {} is not supported", type));
  type = type.substr(1, 3);
  if (std::string_view("<>|=").find(type[0]) == std::string_view::npos)
    header.fail(fmt::format("dtype '{}' is not supported", type));
  const std::endian order = type[0] == '>' ? std::endian::big : std::endian::little;
  const std::string_view kind = type.substr(1);

  Array array;
  array.shape = header.shape();
  if (header.value("fortran_order") != "False" && array.shape.rank() > 1)
    header.fail("the array is in Fortran order; save it with numpy.ascontiguousarray");
  const auto width = static_cast<std::uint64_t>(kind[1] - '0');
  if (kind != "b1" && kind != "u1" && kind != "i1" && kind != "i2" && kind != "u2" && kind != "i4" && kind != "u4" &&
      kind != "i8" && kind != "u8" && kind != "f4" && kind != "f8")
    header.fail(fmt::format("dtype '{}' is not supported", type));
  const std::uint64_t room = bytes.size() - at;
  const std::optional<std::uint64_t> elements = credible_elements(array.shape, room);
  if (!elements || *elements > room / width || *elements * width != room) {
    header.fail(fmt::format("the NPY header says {} of '{}', but {} bytes of values follow", to_string(array.shape),
                            type, room));
  }
  if (*elements == 0 && array.shape[0] > 0) header.fail("its rows have no elements");
  const auto count = static_cast<std::size_t>(*elements);
  if (kind == "u1" || kind == "b1")
    array.values = numbers_at<std::uint8_t, std::uint8_t>(bytes, at, count, order);
  else if (kind == "i1")
    array.values = numbers_at<std::int32_t, std::int8_t>(bytes, at, count, order);
  else if (kind == "i2")
    array.values = numbers_at<std::int32_t, std::int16_t>(bytes, at, count, order);
  else if (kind == "u2")
    array.values = numbers_at<std::int32_t, std::uint16_t>(bytes, at, count, order);
  else if (kind == "i4")
    array.values = numbers_at<std::int32_t, std::int32_t>(bytes, at, count, order);
  else if (kind == "u4")
    array.values = numbers_at<double, std::uint32_t>(bytes, at, count, order);
  else if (kind == "i8")
    array.values = exact_doubles<std::int64_t>(header, bytes, at, count, order);
  else if (kind == "u8")
    array.values = exact_doubles<std::uint64_t>(header, bytes, at, count, order);
  else if (kind == "f4")
    array.values = numbers_at<float, float>(bytes, at, count, order);
  else
    array.values = numbers_at<double, double>(bytes, at, count, order);
  return array;
}

Loaded read_npy(SourceContext& context) {
  return read_files_by_key(context, [](const std::string& path) { return parse_npy(path, read_file(path)); });
}

Loaded read_npz(SourceContext& context) {
  Loaded loaded;
  const std::optional<std::string> name = context.reader.string(context.value);
  if (!name) return loaded;
  const std::string path = context.files.find(*name);
  const auto npz = std::make_shared<const Npz>(path);
  Files* files = &context.files;
  for (const std::string& array : npz->names()) {
    loaded.rows.arrays.push_back({array, context.value, [files, npz, path, array] {
                                    return files->array(path + "/" + array,
                                                        [&](const std::string&) { return npz->read(array); });
                                  }});
  }
  return loaded;
}

}  // namespace graphrun::data
