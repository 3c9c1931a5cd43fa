#include "data/csv/dates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace graphrun::data {
namespace {

struct Moment {
  std::int64_t days = 0;  // since 1970-01-01
  double seconds = 0;     // since midnight, UTC
};

std::int64_t days_from_civil(std::int64_t year, std::int64_t month, std::int64_t day) {
  year -= month <= 2 ? 1 : 0;
  const std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  const std::int64_t of_era = year - era * 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

struct Civil {
  std::int64_t year, month, day;
};

Civil civil_from_days(std::int64_t days) {
  days += 719468;
  const std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const std::int64_t of_era = days - era * 146097;
  const std::int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const std::int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const std::int64_t shifted = (5 * of_year + 2) / 153;  // months from March on
  const std::int64_t month = shifted + (shifted < 10 ? 3 : -9);
  return {year + era * 400 + (month <= 2 ? 1 : 0), month, of_year - (153 * shifted + 2) / 5 + 1};
}

bool is_leap(std::int64_t year) {
  return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

std::int64_t days_of(std::int64_t year, std::int64_t month) {
  if (month == 2) return is_leap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

class DateParser {
 public:
  DateParser(std::string_view text, DateOrder order) : text_(text), order_(order) {}

  std::optional<Moment> parse() {
    const std::optional<Civil> date = this->date();
    if (!date || date->month < 1 || date->month > 12 || date->day < 1 || date->day > days_of(date->year, date->month))
      return std::nullopt;
    Moment moment{days_from_civil(date->year, date->month, date->day), 0};
    if (text_.empty()) return moment;
    if (!sign('T') && !sign('t') && !sign(' ')) return std::nullopt;
    return time(moment);
  }

 private:
  std::optional<Civil> date() {
    std::int64_t parts[3] = {};
    std::size_t widths[3] = {};
    char separator = '\0';
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == 1 && !text_.empty()) separator = text_[0];
      if (i > 0 && !sign(separator)) return std::nullopt;
      widths[i] = std::min(text_.find_first_not_of("0123456789"), text_.size());
      if (widths[i] == 0 || widths[i] == 3 || widths[i] > 4) return std::nullopt;
      parts[i] = *digits(widths[i]);
    }
    if (separator != '.' && separator != '-' && separator != '/') return std::nullopt;
    const bool year_first = widths[0] == 4 && separator != '.';
    if (widths[1] > 2 || widths[year_first ? 2 : 0] > 2 || widths[year_first ? 0 : 2] != 4) return std::nullopt;
    if (year_first) return Civil{parts[0], parts[1], parts[2]};
    if (separator != '.' && order_ == DateOrder::unknown) return std::nullopt;
    if (separator != '.' && order_ == DateOrder::month_first) std::swap(parts[0], parts[1]);
    return Civil{parts[2], parts[1], parts[0]};
  }

  std::optional<Moment> time(Moment moment) {
    const auto hour = digits(2);
    if (!hour || *hour > 24 || !sign(':')) return std::nullopt;
    const auto minute = digits(2);
    if (!minute || *minute > 59) return std::nullopt;
    double second = 0;
    if (sign(':')) {
      const auto whole = digits(2);
      if (!whole || *whole > 59) return std::nullopt;
      second = static_cast<double>(*whole);
      if ((sign('.') || sign(',')) && !fraction(second)) return std::nullopt;
    }
    if (*hour == 24 && (*minute > 0 || second > 0)) return std::nullopt;  // only the end of the day
    std::int64_t offset = 0;                                              // in minutes
    if (!text_.empty()) sign(' ');
    if (text_ == "UTC" || text_ == "GMT" || text_ == "Z" || text_ == "z") text_ = {};
    if (!text_.empty()) {
      const std::int64_t east = sign('+') ? 1 : sign('-') ? -1 : 0;
      const auto hours = digits(2);
      const bool has_minutes = sign(':') || !text_.empty();
      const auto minutes = has_minutes ? digits(2) : 0;
      if (east == 0 || !hours || !minutes || *hours > 23 || *minutes > 59) return std::nullopt;
      offset = east * (60 * *hours + *minutes);
    }
    if (!text_.empty()) return std::nullopt;
    std::int64_t minutes = 60 * *hour + *minute - offset;
    const std::int64_t shift = minutes < 0 ? -1 : minutes >= 1440 ? 1 : 0;
    minutes -= shift * 1440;
    return Moment{moment.days + shift, static_cast<double>(minutes * 60) + second};
  }

  bool fraction(double& second) {
    double unit = 0.1;
    std::size_t count = 0;
    for (; !text_.empty() && text_[0] >= '0' && text_[0] <= '9'; ++count, unit /= 10, text_.remove_prefix(1))
      second += unit * (text_[0] - '0');
    return count > 0;
  }

  std::optional<std::int64_t> digits(std::size_t count) {
    if (text_.size() < count) return std::nullopt;
    std::int64_t value = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return std::nullopt;
      value = 10 * value + (text_[i] - '0');
    }
    text_.remove_prefix(count);
    return value;
  }

  bool sign(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }

  std::string_view text_;
  DateOrder order_;
};

struct DateFunction {
  Doc doc;
  double (*of)(const Moment& moment);
};

constexpr DateFunction kFunctions[] = {
    {{"days", "days since 1970-01-01, with the time as a fraction"},
     [](const Moment& m) { return static_cast<double>(m.days) + m.seconds / 86400; }},
    {{"seconds", "seconds since 1970-01-01"},
     [](const Moment& m) { return static_cast<double>(m.days) * 86400 + m.seconds; }},
    {{"year", "the year"}, [](const Moment& m) { return static_cast<double>(civil_from_days(m.days).year); }},
    {{"month", "1 to 12"}, [](const Moment& m) { return static_cast<double>(civil_from_days(m.days).month); }},
    {{"day", "of the month, 1 to 31"},
     [](const Moment& m) { return static_cast<double>(civil_from_days(m.days).day); }},
    {{"weekday", "1 (Monday) to 7 (Sunday)"},
     [](const Moment& m) { return static_cast<double>(((m.days + 3) % 7 + 7) % 7 + 1); }},
    {{"hour", "0 to 23"}, [](const Moment& m) { return std::floor(m.seconds / 3600); }},
    {{"minute", "0 to 59"}, [](const Moment& m) { return std::fmod(std::floor(m.seconds / 60), 60); }},
};

}  // namespace

bool is_date(std::string_view text, DateOrder order) {
  return DateParser(text, order).parse().has_value();
}

bool is_date(std::string_view text) {
  return is_date(text, DateOrder::day_first) || is_date(text, DateOrder::month_first);
}

std::span<const Doc> date_functions() {
  static const std::vector<Doc> docs = [] {
    std::vector<Doc> all;
    for (const DateFunction& function : kFunctions) all.push_back(function.doc);
    return all;
  }();
  return docs;
}

std::optional<double> date_number(std::string_view text, std::size_t function, DateOrder order) {
  const std::optional<Moment> moment = DateParser(text, order).parse();
  return moment ? std::optional(kFunctions[function].of(*moment)) : std::nullopt;
}

}  // namespace graphrun::data
