// row_format.h: what a file of rows is: told by a flag, by its first bytes, by its name, or by its first character.
// Contract: magic numbers win over names, so that a pipe needs no flag; text that is no JSON is CSV. Throws Error: a
// name of a format that does not exist.
#pragma once

#include <string>
#include <string_view>

namespace graphrun {

enum class RowFormat { csv, records, flat_json, npy, npz, idx };

// `head`: the file's first bytes, kFormatBytes of them where it has so many. `said`: "csv", "json", "npy", "npz",
// "idx", or empty.
inline constexpr std::size_t kFormatBytes = 4096;
RowFormat format_of(const std::string& path, std::string_view head, std::string_view said);

// "people.JSONL" as "jsonl", ".gz" left out.
std::string extension_of(const std::string& path);

}  // namespace graphrun
