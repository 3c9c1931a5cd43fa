// html.h: building blocks of a self-contained HTML page: no scripts, no external resources.
// Contract: untrusted text is escaped everywhere. The page's Content-Security-Policy allows only its own styles and
// embedded images. Not handled here: content of the page (report_page.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphrun::cli::html {

std::string escaped(std::string_view text);

// A complete page; `body` is HTML.
std::string page(std::string_view title, std::string_view body);

// `content` is HTML; returns "" if it is empty.
std::string section(std::string_view heading, std::string_view content);

std::string preformatted(std::string_view text);

// Collapsed by default. `content` is HTML; returns "" if it is empty.
std::string details(std::string_view summary, std::string_view content);

// The first row is the header; an empty header or caption is omitted. The first cell of each other row is the row
// header. Rows shorter than the header are padded with empty cells.
std::string table(std::string_view caption, const std::vector<std::vector<std::string>>& rows);

std::string base64(std::string_view bytes);

// Pictures side by side, as many as fit. `content` is HTML; returns "" if it is empty.
std::string columns(std::string_view content);

// Embedded as an image, so that its styles are isolated from the page and from other pictures.
std::string picture(std::string_view svg, std::string_view description);

}  // namespace graphrun::cli::html
