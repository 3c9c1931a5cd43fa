#include "data/transforms/encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "base/source_text.h"
#include "graphrun/error.h"

namespace graphrun::data {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

// Length of the character at `i`, whose first byte is not ASCII; 0 if it is not UTF-8.
std::size_t character_bytes(std::string_view text, std::size_t i) {
  const unsigned char first = byte_at(text, i);
  const std::size_t count = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  for (std::size_t k = 1; k < count; ++k) {
    // Overlong forms, surrogates and code points beyond U+10FFFF differ in the second byte.
    const unsigned low = k > 1 ? 0x80 : first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = k > 1 ? 0xBF : first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (byte_at(text, i + k) < low || byte_at(text, i + k) > high) return 0;
  }
  return count;
}

std::size_t first_not_utf8(std::string_view text) {
  std::size_t i = 0;
  for (std::size_t bytes = 0; i < text.size(); i += bytes) {
    std::uint64_t eight = ~std::uint64_t{0};
    if (text.size() - i >= sizeof(eight)) std::memcpy(&eight, text.data() + i, sizeof(eight));
    bytes = (eight & 0x8080808080808080u) == 0 ? sizeof(eight) : byte_at(text, i) < 0x80 ? 1 : character_bytes(text, i);
    if (bytes == 0) break;
  }
  return i;
}

// Detects UTF-16/32 by the byte order mark, or by the zero bytes of ASCII characters; "": neither.
std::string_view wide_encoding(std::string_view text) {
  std::size_t quads = 0, zeros[4] = {};
  for (; 4 * quads + 3 < std::min<std::size_t>(text.size(), 4096); ++quads) {
    for (std::size_t k = 0; k < 4; ++k) zeros[k] += text[4 * quads + k] == '\0' ? 1 : 0;
  }
  const auto mostly = [&](std::size_t k) { return 2 * zeros[k] > quads; };
  if (mostly(1) && mostly(2)) return mostly(0) ? "UTF-32BE" : "UTF-32LE";
  if (text.starts_with("\xFF\xFE") || (mostly(1) && mostly(3))) return "UTF-16LE";
  if (text.starts_with("\xFE\xFF") || (mostly(0) && mostly(2))) return "UTF-16BE";
  return "";
}

// Converts "sales.csv.gz" to "sales-utf8.csv".
std::string conversion(std::filesystem::path path, std::string_view from) {
  const std::string command = fmt::format("iconv -f {} -t UTF-8", from), in = path.string();
  std::error_code ignored;
  if (in.starts_with("/proc/") || !std::filesystem::is_regular_file(path, ignored))
    return fmt::format("pipe it through: {}", command);
  const bool is_gzip = path.extension() == ".gz";
  if (is_gzip) path.replace_extension();
  path.replace_filename(path.stem().string() + "-utf8" + path.extension().string());
  return fmt::format(fmt::runtime(is_gzip ? "gzip -dc '{1}' | {0} > '{2}'" : "{0} '{1}' > '{2}'"), command, in,
                     path.string());
}

}  // namespace

void require_utf8(const std::string& path, std::string_view text, int lines_before) {
  const std::size_t zero = text.find('\0'), bad = first_not_utf8(text), at = std::min(zero, bad);
  if (at == text.size()) return;
  Diagnostic diagnostic;
  SourceLines(text).locate(diagnostic, at);
  diagnostic.source_line.clear();
  diagnostic.line += lines_before;
  diagnostic.code = "data.encoding";
  diagnostic.message = fmt::format("byte 0x{:02X} is not UTF-8", byte_at(text, at));
  diagnostic.file = path;
  const std::string_view wide = wide_encoding(text), before = text.substr(0, at);
  const char* image = text.starts_with("\x89PNG") ? "PNG" : text.starts_with("\xFF\xD8\xFF") ? "JPEG" : nullptr;
  if (image != nullptr) {
    diagnostic.message = fmt::format("the file is a {} image, not a table or an array", image);
    diagnostic.line = diagnostic.column = 0;
    diagnostic.hint = "docs/guide/images.md describes how graphrun reads images";
  } else if (!wide.empty()) {
    diagnostic.message = fmt::format("the file is {}, expected UTF-8", wide);
    diagnostic.hint = conversion(path, wide);
  } else if (zero == at) {
    diagnostic.message = fmt::format("'{}' is not a text file: byte {} is 0", path, zero);
  } else if (std::any_of(before.begin(), before.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    diagnostic.message += ", and other characters before it are";
    diagnostic.hint = "correct it in an editor, or leave it out: " + conversion(path, "UTF-8 -c");
  } else {
    diagnostic.message += "; the file is likely Windows-1252 (Latin-1)";
    diagnostic.hint = conversion(path, "WINDOWS-1252");
  }
  throw Error(ErrorKind::input, {std::move(diagnostic)});
}

}  // namespace graphrun::data
