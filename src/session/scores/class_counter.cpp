#include "session/scores/class_counter.h"

#include <algorithm>
#include <cmath>

#include "graphrun/elements.h"
#include "session/scores/ranking.h"

namespace graphrun {
namespace {

constexpr std::size_t kMaxConfused = 1000;                // classes: a matrix of 8 MB
constexpr std::size_t kMaxRanked = std::size_t{1} << 24;  // probabilities: 128 MiB
constexpr std::uint32_t kUnseenClass = ~std::uint32_t{0};
constexpr int kTops[] = {2, 3, 5};
constexpr double kMin = std::numeric_limits<double>::epsilon();  // lower bound for a given probability in the log loss

double ratio(double a, double b) {
  return b == 0 ? 0 : a / b;
}
double harmonic(double a, double b) {
  return ratio(2 * a * b, a + b);
}
double log_probability(double p) {  // NaN if p is not a probability
  return p >= 0 && p <= 1 ? std::log(std::max(p, kMin)) : kNoScore;
}
double log_sigmoid(double z) {
  return z > 0 ? -std::log1p(std::exp(-z)) : z - std::log1p(std::exp(z));
}

}  // namespace

ClassCounter::ClassCounter(const ClassOutput& output, const HostTensor& target, std::size_t classes)
    : output_(output), width_(classes), classes_(std::max<std::size_t>(classes, 2)) {
  const auto numbers = static_cast<std::size_t>(target.shape().elements());
  const bool is_numbers = target.dtype() == DType::i32 || width_ == 1;
  const std::size_t rows = is_numbers ? numbers : numbers / width_;
  truth_.resize(rows);
  bool hard = true, single = true;  // all values are 0 or 1; each row has a single 1
  with_elements(target, [&](const auto values) {
    for (std::size_t r = 0; r < rows; ++r) {
      if (is_numbers) {
        truth_[r] = target.dtype() == DType::i32 ? static_cast<std::uint32_t>(values[r])
                                                 : (static_cast<double>(values[r]) > 0.5 ? 1u : 0u);
        hard = hard && (static_cast<double>(values[r]) == static_cast<double>(truth_[r]));
        continue;
      }
      const auto row = values.subspan(r * width_, width_);
      truth_[r] = static_cast<std::uint32_t>(std::max_element(row.begin(), row.end()) - row.begin());
      std::size_t ones = 0;
      for (const auto value : row) {
        ones += value == 1 ? 1 : 0;
        hard = hard && (value == 0 || value == 1);
      }
      if (ones == 0 && !output_.words.empty() && !output_.is_multi_label) {
        truth_[r] = kUnseenClass;
        ++ones;
      }
      single = single && ones == 1;
    }
    const bool several_a_row = hard && !single && output_.numbers != ClassOutput::Numbers::softmax_logits;
    if (several_a_row || !hard) {
      truths_.resize(numbers);
      for (std::size_t i = 0; i < numbers; ++i) truths_[i] = static_cast<float>(values[i]);
    }
    kind_ = several_a_row   ? ClassScores::Kind::labels
            : classes_ == 2 ? ClassScores::Kind::two
                            : ClassScores::Kind::several;
  });
  counts_.resize(kind_ == ClassScores::Kind::labels ? width_ : classes_);
  if (kind_ != ClassScores::Kind::labels && classes_ <= kMaxConfused) confusion_.resize(classes_ * classes_);
  for (const int k : kTops) {
    if (kind_ == ClassScores::Kind::several && static_cast<std::size_t>(k) < classes_) top_.push_back(0);
  }
  keeps_ = rows * width_ <= kMaxRanked;
  if (keeps_) probabilities_.reserve(rows * width_);
}

void ClassCounter::add(std::span<const float> rows) {
  for (; rows.size() >= width_; rows = rows.subspan(width_)) {
    kind_ == ClassScores::Kind::labels ? add_labels(rows.first(width_)) : add_row(rows.first(width_));
    ++seen_;
  }
}

void ClassCounter::add_row(std::span<const float> row) {
  const std::size_t truth = truth_[seen_], said = output_.class_of(row);
  ++counts_[said].predicted;
  if (truth == kUnseenClass) {
    ++unseen_;
    return add_probabilities(row);
  }
  ++counts_[truth].rows;
  if (truth == said) ++counts_[truth].right, ++right_;
  if (!confusion_.empty()) ++confusion_[truth * classes_ + said];
  add_top(row, truth);

  add_probabilities(row);
}

void ClassCounter::add_probabilities(std::span<const float> row) {
  using Numbers = ClassOutput::Numbers;
  if (keeps_) {
    probabilities_.resize(probabilities_.size() + width_);
    output_.probabilities(row, std::span(probabilities_).last(width_));
  }
  if (width_ > 1 && output_.numbers == Numbers::softmax_logits) {
    const double largest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float z : row) sum += std::exp(static_cast<double>(z) - largest);
    const double log_sum = largest + std::log(sum);
    for (std::size_t k = 0; k < width_; ++k) {
      const double log_of = static_cast<double>(row[k]) - log_sum, share = share_of(k);
      if (share != 0) log_loss_ -= share * log_of;
    }
    return;
  }
  double given = 0;
  for (const float z : row) given += static_cast<double>(z);
  const bool is_logits = output_.numbers == Numbers::sigmoid_logits;
  for (std::size_t k = 0; k < width_; ++k) {
    const auto z = static_cast<double>(row[k]);
    const double share = share_of(k);
    if (is_logits || width_ == 1 ||
        kind_ == ClassScores::Kind::labels) {  // probabilities of the class and of its complement
      if (share != 0) log_loss_ -= share * (is_logits ? log_sigmoid(z) : log_probability(z));
      if (share != 1) log_loss_ -= (1 - share) * (is_logits ? log_sigmoid(-z) : log_probability(1 - z));
    } else if (share != 0) {
      log_loss_ -= share * (std::abs(given - 1) > 1e-3 ? kNoScore : log_probability(z));
    }
  }
}

double ClassCounter::share_of(std::size_t k) const {
  if (!truths_.empty()) return static_cast<double>(truths_[seen_ * width_ + k]);
  return width_ == 1 ? static_cast<double>(truth_[seen_]) : (k == truth_[seen_] ? 1.0 : 0.0);
}

void ClassCounter::add_labels(std::span<const float> row) {
  bool all_right = true;
  for (std::size_t k = 0; k < width_; ++k) {
    const bool is = truths_[seen_ * width_ + k] == 1, said = output_.predicts(row, k);
    counts_[k].rows += is ? 1 : 0;
    counts_[k].predicted += said ? 1 : 0;
    counts_[k].right += is && said ? 1 : 0;
    all_right = all_right && is == said;
  }
  if (all_right) ++right_;
  add_probabilities(row);
}

// Ties favor the first classes, as in the predicted class.
void ClassCounter::add_top(std::span<const float> row, std::size_t truth) {
  if (top_.empty()) return;
  std::size_t before = 0;
  for (std::size_t k = 0; k < width_; ++k) before += row[k] > row[truth] || (row[k] == row[truth] && k < truth) ? 1 : 0;
  for (std::size_t i = 0; i < top_.size(); ++i) top_[i] += before < static_cast<std::size_t>(kTops[i]) ? 1 : 0;
}

ClassScores ClassCounter::scores(bool with_curves) const {
  ClassScores scores;
  scores.kind = kind_;
  scores.confusion = confusion_;
  const auto rows = static_cast<double>(seen_);
  scores.accuracy = static_cast<double>(right_) / rows;
  scores.unseen = unseen_;
  scores.log_loss = unseen_ > 0 ? kNoScore : log_loss_ / rows;
  if (width_ > 1 && (kind_ == ClassScores::Kind::labels || output_.numbers == ClassOutput::Numbers::sigmoid_logits))
    scores.log_loss /= static_cast<double>(width_);
  for (std::size_t i = 0; i < top_.size(); ++i) scores.top.emplace_back(kTops[i], static_cast<double>(top_[i]) / rows);

  double of_all = 0, predicted = 0, right = 0, counted = 0;
  for (std::size_t k = 0; k < counts_.size(); ++k) {
    const auto& [is, said, both] = counts_[k];
    PerClassScores& one = scores.classes.emplace_back();
    one.name = output_.label(k);
    one.rows = is;
    one.predicted = said;
    one.true_positives = both;
    one.precision = ratio(static_cast<double>(both), static_cast<double>(said));
    one.recall = ratio(static_cast<double>(both), static_cast<double>(is));
    one.f1 = ratio(2 * static_cast<double>(both), static_cast<double>(is + said));
    of_all += static_cast<double>(is), predicted += static_cast<double>(said), right += static_cast<double>(both);
    if (is + said == 0 && kind_ != ClassScores::Kind::labels) continue;  // class absent from these rows
    ++counted;
    scores.macro.precision += one.precision;
    scores.macro.recall += one.recall;
    scores.macro.f1 += one.f1;
  }
  if (unseen_ > 0) ++counted;  // one class that is never predicted
  for (double* sum : {&scores.macro.precision, &scores.macro.recall, &scores.macro.f1}) *sum = ratio(*sum, counted);
  scores.micro = {ratio(right, predicted), ratio(right, of_all + static_cast<double>(unseen_)), 0};
  scores.micro.f1 = harmonic(scores.micro.precision, scores.micro.recall);
  if (kind_ != ClassScores::Kind::labels) fill_exclusive(scores);
  fill_curves(scores, with_curves);
  return scores;
}

// Matthews' coefficient for any number of classes: Gorodkin 2004, "Comparing two K-category assignments by a
// K-category correlation coefficient".
void ClassCounter::fill_exclusive(ClassScores& scores) const {
  double recalls = 0, there = 0, products = 0, said_squared = 0, is_squared = 0;
  for (const PerClassScores& one : scores.classes) {
    const auto is = static_cast<double>(one.rows), said = static_cast<double>(one.predicted);
    products += is * said, said_squared += said * said, is_squared += is * is;
    if (one.rows == 0) continue;
    recalls += one.recall;
    ++there;
  }
  const auto unseen = static_cast<double>(unseen_);
  if (unseen_ > 0) ++there, is_squared += unseen * unseen;
  scores.balanced_accuracy = ratio(recalls, there);
  const auto rows = static_cast<double>(seen_), right = static_cast<double>(right_);
  const double size = std::sqrt(rows * rows - said_squared) * std::sqrt(rows * rows - is_squared);
  scores.mcc = ratio(right * rows - products, size);
}

void ClassCounter::fill_curves(ClassScores& scores, bool with_curves) const {
  const bool two = kind_ == ClassScores::Kind::two;
  for (std::size_t k = two ? 1 : 0; k < scores.classes.size() && !output_.thresholds.empty(); ++k) {
    if (kind_ != ClassScores::Kind::several)
      scores.classes[k].threshold = output_.thresholds[std::min(two ? 0 : k, output_.thresholds.size() - 1)];
  }
  if (probabilities_.size() != seen_ * width_) return;
  std::vector<std::pair<double, bool>> rows(seen_);
  const bool labels = kind_ == ClassScores::Kind::labels;
  double areas = 0, precisions = 0, known = 0;
  for (std::size_t k = 0; k < scores.classes.size(); ++k) {
    for (std::size_t r = 0; r < seen_; ++r) {
      const double of =
          width_ == 1 ? (k == 1 ? probabilities_[r] : -probabilities_[r]) : probabilities_[r * width_ + k];
      rows[r] = {of, labels ? truths_[r * width_ + k] == 1 : truth_[r] == k};
    }
    const CurveAreas found = curve_areas(rows, with_curves && (!two || k == 1) ? &scores.classes[k].curve : nullptr);
    scores.classes[k].auc = found.auc;
    scores.classes[k].average_precision = found.average_precision;
    if (std::isnan(found.auc)) continue;  // all rows of the class, or none
    areas += found.auc, precisions += found.average_precision, ++known;
  }
  scores.auc = two ? scores.classes[1].auc : areas / known;
  scores.average_precision = two ? scores.classes[1].average_precision : precisions / known;
}

}  // namespace graphrun
