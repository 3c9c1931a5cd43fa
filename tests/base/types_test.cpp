#include "graphrun/types.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "graphrun/error.h"
#include "graphrun/params.h"
#include "graphrun/target.h"
#include "graphrun/tensor.h"

namespace graphrun {
namespace {

TEST(DType, NamesAndSizes) {
  const std::pair<const char*, std::size_t> rows[] = {{"f32", 4}, {"f64", 8}, {"i32", 4}, {"u64", 8}, {"bool", 1}};
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(name_of(dtype), rows[i].first);
    EXPECT_EQ(size_of(dtype), rows[i].second);
    DType parsed = DType::f64;
    EXPECT_TRUE(parse_dtype(rows[i].first, parsed));
    EXPECT_EQ(parsed, dtype);
  }
  DType untouched = DType::i32;
  EXPECT_FALSE(parse_dtype("f16", untouched));
  EXPECT_EQ(untouched, DType::i32);
}

TEST(Shape, Elements) {
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{321, 6}).elements(), 1926);
  EXPECT_EQ((Shape{3, 0}).elements(), 0);
  constexpr std::int64_t kBig = std::int64_t{1} << 40;
  EXPECT_THROW((Shape{kBig, kBig}).elements(), Error);
  EXPECT_THROW((Shape{kBig, 1 << 21}).elements(), Error);  // fits, but its bytes as f64 would not
  EXPECT_THROW((Shape{kBig, kBig, 0}).elements(), Error);  // its strides would not fit
  EXPECT_EQ((Shape{kMaxElements, 0}).elements(), 0);
  EXPECT_EQ((Shape{kMaxElements}).elements(), kMaxElements);
  EXPECT_THROW((Shape{kMaxElements + 1}).elements(), Error);
  EXPECT_THROW((Shape{2, -1}).elements(), Error);
}

TEST(Shape, ComparesItsExtentsOnly) {
  Shape shape{2};
  shape.push_back(3);
  EXPECT_EQ(shape, (Shape{2, 3}));
  EXPECT_NE(shape, (Shape{2, 3, 1}));
  EXPECT_NE(shape, (Shape{3, 2}));
}

TEST(Shape, AtMostEightDimensions) {
  Shape shape{1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_THROW(shape.push_back(1), Error);
  EXPECT_EQ(shape.rank(), 8);
  try {
    Shape(std::vector<std::int64_t>(9, 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a tensor has at most 8 dimensions, got 9");
  }
}

TEST(TensorType, Text) {
  EXPECT_EQ(to_string(Shape{321, 6}), "(321, 6)");
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(TensorType{DType::f32, {100, 6}, 1}), "f32(batch, 6)");
  EXPECT_EQ(to_string(TensorType{DType::f32, {200, 6}, 2}), "f32(2*batch, 6)");
  EXPECT_EQ(to_string(TensorType{DType::i32, {6}, 0}), "i32(6)");
  EXPECT_EQ(to_string(TensorType{DType::boolean, {}, 0}), "bool()");
  EXPECT_EQ((TensorType{DType::f64, {3, 5}, 0}).bytes(), 120u);
}

TEST(Params, Text) {
  EXPECT_EQ(to_string(Params{}), "");
  EXPECT_EQ(to_string(Params{MatmulParams{true, false}}), " transpose_a=true transpose_b=false");
  EXPECT_EQ(to_string(Params{ScalarParams{0.1, -2}}), " a=0.1 b=-2");
  EXPECT_EQ(to_string(Params{ReduceParams{5, true}}), " axes=5 keepdims=true");
  EXPECT_EQ(to_string(Params{MinibatchParams{321, 100}}),
            " total=321 capacity=100 shuffle=false key=0 drop_last=false");
}

TEST(Target, TheTable) {
  EXPECT_EQ(find_target("host").executor, "cpu");
  const Target& h200 = find_target("h200");
  EXPECT_EQ(h200.executor, "cuda");
  EXPECT_EQ(h200.compute_capability, 90);
  EXPECT_EQ(h200.multiprocessors, 132);
  EXPECT_EQ(h200.shared_memory, 227u * 1024);
  EXPECT_EQ(find_target("a100").shared_memory, 163u * 1024);
  for (const Target& target : targets()) EXPECT_EQ(&find_target(target.name), &target);
}

TEST(Target, UnknownNamesTheKnown) {
  try {
    find_target("h20");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.diagnostics()[0].code, "target.unknown");
    EXPECT_STREQ(error.what(),
                 "unknown target 'h20'; the targets are host, h200, h100, a100, l4\n    hint: did you mean 'h200'?");
  }
}

TEST(HostTensor, ValuesFillTheShapeAndAreReadAsWhatTheyAre) {
  const auto rejected = [](auto make) -> std::string {
    try {
      make();
    } catch (const Error& error) {
      return error.diagnostics().front().message;
    }
    return "accepted";
  };
  const std::vector<float> five(5);
  EXPECT_EQ(rejected([&] { HostTensor({2, 3}, five); }), "5 values do not fill a tensor of shape (2, 3), which has 6");
  EXPECT_EQ(rejected([&] { HostTensor({5}, five).elements<double>(); }), "a tensor of f32 elements is read as f64");
}

TEST(HostTensor, IsEmptyWhenItWasMovedAway) {
  HostTensor tensor(DType::i32, Shape{2, 3});
  const HostTensor taken(std::move(tensor));
  EXPECT_EQ(taken.shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor.shape(), Shape{0});
  EXPECT_TRUE(tensor.bytes().empty());
  tensor = HostTensor(DType::f64, Shape{4});
  HostTensor other;
  other = std::move(tensor);
  EXPECT_EQ(other.elements<double>().size(), 4u);
  EXPECT_EQ(tensor.shape(), Shape{0});
  EXPECT_TRUE(tensor.elements<float>().empty());
}

}  // namespace
}  // namespace graphrun
