// terminal.h: terminal capabilities, output of results, and human-readable numbers.
// Contract: uses colour only on a terminal, and never with NO_COLOR (no-color.org) or TERM=dumb.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli {

enum class Style { bold, yellow };

bool is_terminal(std::FILE* stream);      // supports rewriting a line; false for TERM=dumb
int terminal_columns(std::FILE* stream);  // 80 when unknown
bool takes_colour(std::FILE* stream);
bool speaks_utf8();  // from the environment, with the rules of setlocale()
std::string paint(std::FILE* stream, Style style, std::string_view text);

// Ignores failures: there is no other stream to report them on.
void write_error(std::string_view text) noexcept;

// Writes to stdout; throws Error (kind run) if the write is incomplete.
void write_results(std::string_view text);

// Table of `rows`: each column is as wide as its widest cell, the first is left-aligned. UTF-8.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

std::string grouped(std::uint64_t number);     // "1,234,567"
std::string human_bytes(std::uint64_t bytes);  // "1,234,567 bytes (1.2 MiB)"
std::string human_duration(double seconds);    // "0:07", "1:02:03"
std::string human_rate(double per_second);     // "53,658", "0.25"
std::string human_time(double seconds);        // "41.3 µs", "1.20 ms", "3.40 s"

}  // namespace graphrun::cli
