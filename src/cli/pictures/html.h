// html.h: pieces of a page of HTML that stands alone: no script, nothing is fetched.
// Contract: text of other hands is escaped wherever it goes; a page's policy forbids all but its own styles and
// pictures that lie in it. Leaves to others: what a page says (report_page.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli::html {

std::string escaped(std::string_view text);

// A whole page: `body` is HTML.
std::string page(std::string_view title, std::string_view body);

// "" where there is no content, which is HTML.
std::string section(std::string_view heading, std::string_view content);

std::string preformatted(std::string_view text);

// Folded until the reader opens it; "" where there is no content, which is HTML.
std::string details(std::string_view summary, std::string_view content);

// The first row is the heading, which is left out where it is empty, as is an empty caption; the first cell of each
// other one names its row. Rows that are shorter than the heading end with empty cells.
std::string table(std::string_view caption, const std::vector<std::vector<std::string>>& rows);

// With its own styles, which those of the page and of other pictures do not meet.
std::string picture(std::string_view svg, std::string_view description);

}  // namespace graphrun::cli::html
