// terminal.h: what a stream can show, results on stdout, and numbers as people read them.
// Contract: colour only on a terminal, and never with NO_COLOR set (no-color.org) or TERM=dumb.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli {

enum class Style { bold, yellow };

bool is_terminal(std::FILE* stream);      // one on which a line can be rewritten: TERM=dumb is none
int terminal_columns(std::FILE* stream);  // 80 when unknown
bool takes_colour(std::FILE* stream);
bool speaks_utf8();  // by the environment, as setlocale() would find it
std::string paint(std::FILE* stream, Style style, std::string_view text);

// Nobody can be told of what stderr does not take.
void write_error(std::string_view text) noexcept;

// Writes to stdout; throws Error (kind run) when not all of it could be written.
void write_results(std::string_view text);

// Cells by row; columns are as wide as their widest cell, the first is flush left. UTF-8.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

std::string grouped(std::uint64_t number);     // "1,234,567"
std::string human_bytes(std::uint64_t bytes);  // "1,234,567 bytes (1.2 MiB)"
std::string human_duration(double seconds);    // "0:07", "1:02:03"
std::string human_rate(double per_second);     // "53,658", "0.25"
std::string human_time(double seconds);        // "41.3 µs", "1.20 ms", "3.40 s"

}  // namespace graphrun::cli
