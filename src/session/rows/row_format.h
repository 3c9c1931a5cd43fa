// row_format.h: detects the format of a row file by flag, first bytes, name, or first character.
// Contract: magic numbers override names, so a pipe needs no flag; text that is not JSON is CSV, and a folder has
// images. Throws Error for an unknown format name.
#pragma once

#include <string>
#include <string_view>

namespace graphrun {

enum class RowFormat { csv, records, flat_json, npy, npz, idx, images };

// `head`: first kFormatBytes bytes of the file, or fewer if it is shorter. `said`: "csv", "json", "npy", "npz", "idx",
// or empty.
inline constexpr std::size_t kFormatBytes = 4096;
RowFormat format_of(const std::string& path, std::string_view head, std::string_view said);

// Lowercase extension without ".gz": "jsonl" for "people.JSONL".
std::string extension_of(const std::string& path);

}  // namespace graphrun
