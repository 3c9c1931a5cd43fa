#include "cli/pictures/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "graphrun/error.h"

namespace graphrun::cli::html {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style>
:root { color-scheme: light dark; --ink: #1c2024; --paper: #fff; --line: #d5d9de; --soft: #f4f5f7; --quiet: #5a636d }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7eb; --paper: #16191d; --line: #3a4048; --soft: #20252b; --quiet: #a3adb6 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 82rem;
  margin: 0 auto; padding: 1rem }
h1 { font-size: 1.6rem; margin: .5rem 0 0 } h2 { font-size: 1.2rem; margin: 0 0 .6rem } section { margin: 2rem 0 }
figure { margin: 0 0 1rem } img { max-width: 100%; height: auto } p { margin: .3rem 0; max-width: 62rem }
.columns { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 34rem), 1fr)); gap: 0 1.5rem } .quiet { color: var(--quiet) }
.wide { overflow-x: auto } .figures { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0; padding: 0 }
.figures li { list-style: none; background: var(--soft); border-radius: .4rem; padding: .5rem .9rem }
.figures b { display: block; font-size: 1.35rem; font-variant-numeric: tabular-nums }
table { border-collapse: collapse } figcaption { padding: .3rem 0; color: var(--quiet) }
th, td { border-bottom: 1px solid var(--line); padding: .25rem 1.2rem .25rem 0; text-align: left; font-weight: normal }
td { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap } thead th { font-weight: 600; text-align: right }
thead th:first-child { text-align: left }
details { margin: .8rem 0 } summary { cursor: pointer; color: var(--quiet) }
pre { background: var(--soft); border-radius: .4rem; padding: .8rem; overflow-x: auto; font-size: .85rem; margin: .8rem 0 }
</style>
)";

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t three = 0;
    for (std::size_t k = 0; k < 3; ++k)
      three = three << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += k <= bytes.size() - i ? kDigits[three >> (18 - 6 * k) & 63u] : '=';
  }
  return text;
}

std::string escaped(std::string_view text) {
  std::string safe;
  std::size_t begin = 0;
  const auto put = [&](std::size_t end, std::string_view instead) {
    safe += printable(text.substr(begin, end - begin));
    safe += instead;
    begin = end + 1;
  };
  static constexpr std::pair<char, std::string_view> kSpecial[] = {{'&', "&amp;"},  {'<', "&lt;"},   {'>', "&gt;"},
                                                                   {'"', "&quot;"}, {'\'', "&#39;"}, {'\n', "\n"}};
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const auto& [character, instead] : kSpecial) {
      if (text[i] == character) put(i, instead);
    }
  }
  return safe + printable(text.substr(begin));
}

std::string page(std::string_view title, std::string_view body) {
  return fmt::format("{}<title>{}</title></head><body><main>\n{}</main></body></html>\n", kHead, escaped(title), body);
}

std::string section(std::string_view heading, std::string_view content) {
  return content.empty() ? "" : fmt::format("<section><h2>{}</h2>\n{}</section>\n", escaped(heading), content);
}

std::string preformatted(std::string_view text) {
  return text.empty() ? "" : fmt::format("<pre tabindex=\"0\">{}</pre>\n", escaped(text));
}

std::string details(std::string_view summary, std::string_view content) {
  return content.empty() ? ""
                         : fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), content);
}

std::string table(std::string_view caption, const std::vector<std::vector<std::string>>& rows) {
  std::string text = "<figure>";
  if (!caption.empty()) text += fmt::format("<figcaption>{}</figcaption>\n", escaped(caption));
  text += "<div class=\"wide\"><table>";  // scrolls without its caption
  const std::vector<std::string>& heading = rows.front();
  if (std::ranges::any_of(heading, [](const std::string& cell) { return !cell.empty(); })) {
    text += "<thead><tr>";
    for (const std::string& cell : heading) text += fmt::format("<th scope=\"col\">{}</th>", escaped(cell));
    text += "</tr></thead>\n";
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", escaped(rows[i].front()));
    for (std::size_t k = 1; k < std::max(rows[i].size(), heading.size()); ++k)
      text += fmt::format("<td>{}</td>", k < rows[i].size() ? escaped(rows[i][k]) : "");
    text += "</tr>\n";
  }
  return text + "</table></div></figure>\n";
}

std::string columns(std::string_view content) {
  return content.empty() ? "" : fmt::format("<div class=\"columns\">\n{}</div>\n", content);
}

std::string picture(std::string_view svg, std::string_view description) {
  return fmt::format("<figure><img alt=\"{}\" src=\"data:image/svg+xml;base64,{}\"></figure>\n", escaped(description),
                     base64(svg));
}

}  // namespace graphrun::cli::html
