#include "adjoin/core/fields.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"

namespace adjoin {

enum class Colour { kRed, kBlue };

template <>
inline constexpr auto kEnumNames<Colour> =
    std::to_array<EnumName<Colour>>({{"red", Colour::kRed}, {"blue", Colour::kBlue}});

struct Wheel {
  int64_t size = 0;
  Colour colour = Colour::kRed;
};

template <class Visitor>
void fields(Visitor& visit, Wheel& wheel) {
  visit("size", wheel.size, Range{1, 30});
  visit("colour", wheel.colour);
}

struct Cart {
  std::string name;
  bool is_new = false;
  double weight = 0;
  std::optional<int64_t> horse;
  std::vector<int64_t> loads;
  std::vector<Wheel> wheels;
};

template <class Visitor>
void fields(Visitor& visit, Cart& cart) {
  visit("name", cart.name);
  visit("is_new", cart.is_new);
  visit("weight", cart.weight, Range{0.5});
  visit("horse", cart.horse);
  visit("loads", cart.loads, Range{0, 9});
  visit("wheels", cart.wheels);
}

namespace {

const char* const kCart = R"({"name":"c","is_new":true,"weight":2.5,"horse":null,"loads":[3,0,9],)"
                          R"("wheels":[{"size":7,"colour":"blue"},{"size":30,"colour":"red"}]})";

Json cart_json() { return Json::parse(kCart); }

Cart cart_of(const Json& json) {
  Cart cart;
  from_json(json, cart, "cart");
  return cart;
}

void expect_refused(const Json& json, std::initializer_list<std::string_view> parts) {
  expect_error(ErrorKind::kConfig, parts, [&] { cart_of(json); });
}

/// kCart with the value at `pointer` replaced.
Json changed(const char* pointer, Json value) {
  Json json = cart_json();
  json.at(Json::json_pointer(pointer)) = std::move(value);
  return json;
}

TEST(FieldsTest, AreReadWhereTheyBelong) {
  const Cart cart = cart_of(cart_json());
  EXPECT_EQ(cart.name, "c");
  EXPECT_TRUE(cart.is_new);
  EXPECT_EQ(cart.weight, 2.5);
  EXPECT_EQ(cart.loads, (std::vector<int64_t>{3, 0, 9}));
  ASSERT_EQ(cart.wheels.size(), 2U);
  EXPECT_EQ(cart.wheels[0].size, 7);
  EXPECT_EQ(cart.wheels[0].colour, Colour::kBlue);
  EXPECT_EQ(cart.wheels[1].colour, Colour::kRed);
}

TEST(FieldsTest, AreWrittenInTheirOrder) { EXPECT_EQ(to_json(cart_of(cart_json())).dump(), kCart); }

TEST(FieldsTest, AreReadInAnyOrder) {
  const Json json = Json::parse(R"({"colour":"blue","size":4})");
  Wheel wheel;
  from_json(json, wheel, "wheel");
  EXPECT_EQ(wheel.size, 4);
}

TEST(FieldsTest, ThatAreMissingAreNamedWithTheirPlace) {
  const Json whole = cart_json();
  for (const auto& [key, value] : whole.items()) {
    Json json = whole;
    json.erase(key);
    expect_refused(json, {"cart: field \"" + key + "\" is missing"});
  }
  Json json = cart_json();
  json["wheels"][1].erase("size");
  expect_refused(json, {"cart.wheels.1: field \"size\" is missing"});
}

TEST(FieldsTest, ThatAreUnknownAreNamedWithWhatWasLikelyMeant) {
  Json json = cart_json();
  json["weigth"] = 3;
  expect_refused(json, {"cart: unknown field \"weigth\"; did you mean weight?"});
  json = cart_json();
  json["wheels"][0]["zzzzzzzzz"] = 1;
  expect_refused(json, {"cart.wheels.0: unknown field \"zzzzzzzzz\"; legal: size, colour"});
}

TEST(FieldsTest, OfTheWrongTypeSayWhatTheyAreAndMustBe) {
  expect_refused(changed("/name", 5), {"cart.name: is 5, must be a string"});
  expect_refused(changed("/is_new", 1), {"cart.is_new: is 1, must be true or false"});
  expect_refused(changed("/weight", "heavy"), {"cart.weight: is \"heavy\", must be a number"});
  expect_refused(changed("/horse", false), {"cart.horse: is false, must be an integer"});
  expect_refused(changed("/loads", 3), {"cart.loads: is 3, must be a list"});
  expect_refused(changed("/loads/1", 1.5), {"cart.loads.1: is 1.5, must be an integer"});
  expect_refused(changed("/wheels/1", Json::array()),
                 {"cart.wheels.1: is a list, must be an object"});
  expect_refused(changed("/wheels/0/colour", Json::object()),
                 {"cart.wheels.0.colour: is an object, must be a word"});
  expect_refused(Json("x"), {"cart: is \"x\", must be an object"});
}

TEST(FieldsTest, TakeNoWholeNumberWrittenAsAFraction) {
  expect_refused(changed("/wheels/0/size", 7.0), {"is 7.0, must be an integer"});
}

TEST(FieldsTest, TakeAnIntegerForANumber) { EXPECT_EQ(cart_of(changed("/weight", 3)).weight, 3.0); }

TEST(FieldsTest, RefuseIntegersBeyond64Bits) {
  expect_refused(changed("/wheels/0/size", uint64_t{1} << 63), {"must be an integer"});
}

TEST(FieldsTest, RefuseNumbersThatAreNotFinite) {
  expect_refused(changed("/weight", std::nan("")), {"cart.weight", "must be a number"});
  expect_refused(changed("/weight", std::numeric_limits<double>::infinity()),
                 {"cart.weight", "must be a number"});
}

TEST(FieldsTest, HoldTheEndsOfTheirRangeButNothingBeyond) {
  EXPECT_EQ(cart_of(changed("/wheels/0/size", 1)).wheels[0].size, 1);
  EXPECT_EQ(cart_of(changed("/wheels/0/size", 30)).wheels[0].size, 30);
  expect_refused(changed("/wheels/0/size", 0), {"cart.wheels.0.size: is 0, must be 1 to 30"});
  expect_refused(changed("/wheels/0/size", 31), {"is 31, must be 1 to 30"});
  expect_refused(changed("/wheels/0/size", INT64_MIN), {"must be 1 to 30"});
  expect_refused(changed("/weight", 0.25), {"cart.weight: is 0.25, must be at least 0.5"});
}

TEST(FieldsTest, CheckTheRangeOfEveryItemOfAList) {
  expect_refused(changed("/loads/2", 10), {"cart.loads.2: is 10, must be 0 to 9"});
}

TEST(FieldsTest, RefuseListsOfMoreItemsThanAnythingHas) {
  expect_refused(changed("/loads", std::vector<int>(65537, 1)), {"cart.loads: 65537 items"});
  EXPECT_EQ(cart_of(changed("/loads", std::vector<int>(65536, 1))).loads.size(), 65536U);
}

TEST(FieldsTest, ListTheLegalWordsOfAnEnum) {
  expect_refused(changed("/wheels/0/colour", "green"),
                 {"cart.wheels.0.colour: unknown value \"green\"; legal: red, blue"});
}

TEST(FieldsTest, RefuseAnEnumWordOfBrokenUtf8AsAnErrorOfTheConfig) {
  expect_refused(changed("/wheels/0/colour", "\xff"), {"cart.wheels.0.colour", "legal: red, blue"});
}

TEST(DescribeTest, ShortensLongValues) {
  EXPECT_EQ(describe(Json("abc")), "\"abc\"");
  EXPECT_LE(describe(Json(std::string(1000, 'x'))).size(), 50U);
}

TEST(DescribeTest, SurvivesBrokenUtf8) { EXPECT_NE(describe(Json("a\xff")), ""); }

}  // namespace
}  // namespace adjoin
