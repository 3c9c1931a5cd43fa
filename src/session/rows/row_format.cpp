#include "session/rows/row_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>
#include <vector>

#include "data/formats/inflate.h"
#include "graphrun/error.h"

namespace graphrun {
namespace {

constexpr std::array<std::pair<std::string_view, RowFormat>, 5> kNames = {{{"csv", RowFormat::csv},
                                                                           {"json", RowFormat::records},
                                                                           {"npy", RowFormat::npy},
                                                                           {"npz", RowFormat::npz},
                                                                           {"idx", RowFormat::idx}}};

std::string_view without_spaces(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

// Detects {"m": 3, "n": 2, "x": [...]}: sizes and flat arrays of the source "json", not a row.
bool is_flat(std::string_view head) {
  const auto has = [&](std::string_view key) { return head.find(key) != std::string_view::npos; };
  return head.starts_with('{') && has("\"m\"") && has("\"n\"") && has("\"x\"");
}

}  // namespace

std::string extension_of(const std::string& path) {
  std::filesystem::path name(path);
  const auto lower = [](std::string text) {
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return text;
  };
  if (lower(name.extension().string()) == ".gz") name.replace_extension();
  const std::string extension = lower(name.extension().string());
  return extension.empty() ? extension : extension.substr(1);
}

RowFormat format_of(const std::string& path, std::string_view head, std::string_view said) {
  std::string inside;
  if (data::is_gzip(head)) {
    try {
      inside = data::inflate(path, head, data::Wrapper::gzip, 64);
    } catch (const Error&) {  // truncated, as the head of a file may be
    }
    if (!inside.empty()) head = inside;
  }
  const std::string_view text = without_spaces(head);
  if (!said.empty()) {
    const auto named = std::find_if(kNames.begin(), kNames.end(), [&](const auto& one) { return one.first == said; });
    if (named == kNames.end()) {
      std::vector<std::string> names;
      for (const auto& one : kNames) names.emplace_back(one.first);
      throw Error(ErrorKind::input, "predict.format",
                  fmt::format("there is no format '{}'; there are csv, json, npy, npz and idx", said),
                  did_you_mean(std::string(said), names));
    }
    return named->second == RowFormat::records && is_flat(text) ? RowFormat::flat_json : named->second;
  }
  if (head.starts_with("\x93NUMPY")) return RowFormat::npy;
  if (head.starts_with("\x89PNG")) return RowFormat::images;
  if (head.starts_with("PK\x03\x04") || head.starts_with("PK\x05\x06")) return RowFormat::npz;
  const bool is_utf32 = head.size() >= 4 && (head[2] == 0 || head.substr(2, 2) == "\xFE\xFF");
  if (head.size() >= 4 && head[0] == 0 && head[1] == 0 && !is_utf32) return RowFormat::idx;
  const std::string extension = extension_of(path);
  for (const std::string_view known : {"csv", "tsv", "tab", "txt"}) {
    if (extension == known) return RowFormat::csv;
  }
  const bool is_json = extension == "json" || extension == "jsonl" || extension == "ndjson" || text.starts_with('{') ||
                       text.starts_with('[');
  if (is_json) return is_flat(text) ? RowFormat::flat_json : RowFormat::records;
  if (extension == "png") return RowFormat::images;
  if (extension == "npy") return RowFormat::npy;
  if (extension == "npz") return RowFormat::npz;
  return RowFormat::csv;
}

}  // namespace graphrun
