#include "plot/glyphs.h"

#include <algorithm>

namespace graphrun::plot {
namespace {

// ' ' to '~': strokes as grid points "xy"; "~" starts a stroke with rounded corners.
constexpr std::string_view kGlyphs[] = {"",
                                        "2024 2626",
                                        "1012 3032",
                                        "1016 3036 0242 0444",
                                        "~41100103234445260605 2027",
                                        "4006 0011 3546",
                                        "~4616034114010102 0344",
                                        "2022",
                                        "~3021121416273838",
                                        "~1021323436271818",
                                        "2125 0244 0442",
                                        "2125 0343",
                                        "2628 2618",
                                        "0343",
                                        "2626",
                                        "4007",
                                        "~20100105163645413020",
                                        "0220 2026 0646",
                                        "~0110304142330546 0646",
                                        "~0110304142332313 ~1323334445361605",
                                        "3036 3004 0444",
                                        "4000 0003 ~033242454636160605",
                                        "~4130100105163645443303",
                                        "0040 4016",
                                        "~23130201103041423323 ~23130405163645443323",
                                        "~0516364541301001021343",
                                        "2222 2626",
                                        "2222 2628",
                                        "4103 0345",
                                        "0242 0444",
                                        "0143 4305",
                                        "~0110304142332324 2626",
                                        "~33231425354230100105163646",
                                        "0620 2046 1434",
                                        "0600 ~0030414232230303 ~0333444536360606",
                                        "~4130100105163645",
                                        "0600 ~0020314235260606 0020 0626",
                                        "4000 0006 0646 0333",
                                        "4000 0006 0333",
                                        "~413010010516364543 4323",
                                        "0006 4046 0343",
                                        "1030 2026 1636",
                                        "~303525160605",
                                        "0006 4003 0346",
                                        "0006 0646",
                                        "0600 0023 2340 4046",
                                        "0600 0046 4640",
                                        "~20100105163645413020",
                                        "0600 ~00304142330303",
                                        "~20100105163645413020 2447",
                                        "0600 ~00304142330303 2346",
                                        "~41301001023344453616 1605",
                                        "0040 2026",
                                        "~000516364540",
                                        "0026 2640",
                                        "0016 1622 2236 3640",
                                        "0046 4006",
                                        "0023 2340 2326",
                                        "0040 4006 0646",
                                        "3010 1018 1838",
                                        "0047",
                                        "1030 3038 3818",
                                        "0220 2042",
                                        "0747",
                                        "1021",
                                        "4246 ~43321203051645 45",
                                        "0006 ~033242454636160503",
                                        "~4332120305163645",
                                        "4046 ~433212030516364543",
                                        "0444 ~444332120305163645",
                                        "~40302126 0232",
                                        "4247 ~4433220304152644 ~47381807",
                                        "0006 ~0432424346",
                                        "2226 2020",
                                        "2227 ~27180807 2020",
                                        "0006 4204 1346",
                                        "1020 2026 1636",
                                        "0206 ~03121323 ~232626 ~23334346 4646",
                                        "0206 ~0413324246",
                                        "~22120305163645433222",
                                        "0208 ~033242454636160503",
                                        "4248 ~433212030516364543",
                                        "0206 ~04132242",
                                        "~4332120314344536160505",
                                        "~1015263645 0232",
                                        "~020516364542 4246",
                                        "0226 2642",
                                        "0216 1624 2436 3642",
                                        "0246 4206",
                                        "0226 4218 1808",
                                        "0242 4206 0646",
                                        "~3021221304152627 2738",
                                        "2028",
                                        "~1021223344352627 2718",
                                        "~031222243343"};
static_assert(sizeof kGlyphs / sizeof kGlyphs[0] == '~' - ' ' + 1);

// Rounds corners by cutting them twice.
std::vector<Point> rounded(std::vector<Point> points) {
  for (int times = 0; times < 2 && points.size() > 2; ++times) {
    std::vector<Point> cut = {points.front()};
    for (std::size_t i = 1; i + 1 < points.size(); ++i) {
      const Point &before = points[i - 1], &at = points[i], &after = points[i + 1];
      cut.push_back({at.x + (before.x - at.x) / 4, at.y + (before.y - at.y) / 4});
      cut.push_back({at.x + (after.x - at.x) / 4, at.y + (after.y - at.y) / 4});
    }
    cut.push_back(points.back());
    points = std::move(cut);
  }
  return points;
}

}  // namespace

std::vector<std::vector<Point>> glyph(char c) {
  const bool known = c >= ' ' && c <= '~';
  std::string_view text = known ? kGlyphs[c - ' '] : std::string_view("0040 4046 4606 0600");
  std::vector<std::vector<Point>> strokes;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view stroke = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool round = stroke.starts_with('~');
    if (round) stroke.remove_prefix(1);
    std::vector<Point> points;
    for (std::size_t i = 0; i + 1 < stroke.size(); i += 2)
      points.push_back({static_cast<double>(stroke[i] - '0'), static_cast<double>(stroke[i + 1] - '0')});
    strokes.push_back(round ? rounded(std::move(points)) : std::move(points));
  }
  return strokes;
}

}  // namespace graphrun::plot
