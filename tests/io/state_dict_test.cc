// Checkpoints in memory: what is chosen from them, and what is refused in both containers.

#include "adjoin/io/state_dict.h"

#include <gtest/gtest.h>

#include "adjoin/io/pth.h"
#include "io/make_pickle.h"
#include "support/expect_error.h"

namespace adjoin::io {
namespace {

using namespace pickled;

TensorFile read(const std::string& bytes) { return read_pth(own_bytes("file", to_bytes(bytes))); }

void expect_refused(const std::string& bytes, std::initializer_list<std::string_view> parts) {
  expect_error(ErrorKind::kData, {"file: "}, [&] { read(bytes); });
  expect_error(ErrorKind::kData, parts, [&] { read(bytes); });
}

/// Both containers refuse a checkpoint of this value.
void expect_both_refused(const std::string& value, std::initializer_list<std::string_view> parts) {
  expect_refused(zip(value), parts);
  expect_refused(legacy(value), parts);
}

/// The same for a value without a tensor, and so a file without a storage.
void expect_bare_refused(const std::string& value, std::initializer_list<std::string_view> parts) {
  Legacy empty;
  empty.keys = "]";
  empty.storages = "";
  expect_refused(zip(value), parts);
  expect_refused(legacy(value, empty), parts);
}

std::vector<std::string> names(const std::string& value) {
  std::vector<std::string> result;
  for (const auto& [name, tensor] : read(zip(value)).tensors) result.push_back(name);
  return result;
}

using Names = std::vector<std::string>;

std::string one(const std::string& name) { return dict({text(name), tensor()}); }

TEST(StateDictTest, ReadsTheSameFromBothContainers) {
  for (const std::string& bytes : {zip(one("w")), legacy(one("w"))}) {
    EXPECT_TRUE(looks_like_pth(own_bytes("file", to_bytes(bytes))));
    const TensorFile file = read(bytes);
    const StoredTensor& w = file.tensors.at("w");
    EXPECT_EQ(w.dtype, Dtype::kF32);
    EXPECT_EQ(w.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(std::memcmp(w.data, floats(6).data(), 24), 0);
  }
}

TEST(StateDictTest, RefusesNamesWithoutEnd) {
  std::string many = "}(" + text(std::string(1 << 19, 'a')) + "q\x01" + tensor();
  for (int i = 0; i < 10000; ++i) many += "h\x01N";  // the same long name again and again
  expect_both_refused(many + "u", {"has a name of 524288 bytes; at most 4096"});
}

TEST(StateDictTest, SaysWhichOfSeveralItUses) {
  const std::string both = dict({text("model"), one("a"), text("model_ema"), one("b")});
  ASSERT_EQ(read(zip(both)).notes.size(), 1U);
  EXPECT_EQ(read(zip(both)).notes[0],
            "file: of its state_dicts the one under \"model_ema\" is used");
  const std::string deep =
      dict({text("model"), dict({text("state_dict"), one("a"), text("state_dict_ema"), one("b")})});
  ASSERT_EQ(read(zip(deep)).notes.size(), 1U);
  EXPECT_TRUE(contains(read(zip(deep)).notes[0], "\"model.state_dict_ema\""));
  EXPECT_TRUE(read(zip(dict({text("model"), one("a")}))).notes.empty());
}

TEST(StateDictTest, PrefersAveragedWeightsAndUnwrapsTwice) {
  EXPECT_EQ(names(one("a")), Names{"a"});
  EXPECT_EQ(names(dict({text("state_dict"), one("a")})), Names{"a"});
  EXPECT_EQ(names(dict({text("state_dict"), one("a"), text("model"), one("b")})), Names{"b"});
  EXPECT_EQ(names(dict({text("model"), one("a"), text("model_ema"), one("b")})), Names{"b"});
  EXPECT_EQ(names(dict({text("model_ema"), one("a"), text("state_dict_ema"), one("b")})),
            Names{"b"});
  EXPECT_EQ(names(dict({text("model"), dict({text("state_dict"), one("a")})})), Names{"a"});
  EXPECT_EQ(names(dict({text("model_ema"), "N", text("model"), one("b")})), Names{"b"});
  EXPECT_EQ(names(dict({text("model"), "}", text("w"), tensor()})), Names{"w"});
  expect_both_refused(dict({text("model"), dict({text("model"), dict({text("model"), one("a")})})}),
                      {"holds no state_dict: its keys are model"});
}

TEST(StateDictTest, TakesTheLastOfEqualKeys) {
  Tensor short_one;
  short_one.shape = {1};
  short_one.strides = {1};
  const TensorFile file = read(zip(dict(
      {text("w"), tensor(), text("w"), tensor(short_one), text("x"), tensor(), text("x"), "N"})));
  EXPECT_EQ(file.tensors.at("w").shape, std::vector<int64_t>{1});
  EXPECT_EQ(file.tensors.size(), 1U);
  EXPECT_EQ(file.not_tensors, Names{"x"});
  EXPECT_EQ(names(dict({text("model"), one("a"), text("model"), one("b")})), Names{"b"});
}

TEST(StateDictTest, TakesThePrefixOfDataParallelOffWhenEveryNameHasIt) {
  EXPECT_EQ(names(dict({text("module.a"), tensor(), text("module.b"), tensor()})),
            (Names{"a", "b"}));
  EXPECT_EQ(names(dict({text("module.a"), tensor(), text("b"), tensor()})),
            (Names{"b", "module.a"}));
}

TEST(StateDictTest, ListsWhatIsNoTensorByName) {
  const TensorFile file = read(zip(dict({text("w"), tensor(), text("epoch"), "K\x03"})));
  EXPECT_EQ(file.not_tensors, Names{"epoch"});
  Tensor untyped;
  untyped.in.type = "UntypedStorage";
  EXPECT_EQ(read(zip(dict({text("w"), tensor(), text("u"), tensor(untyped)}))).not_tensors,
            Names{"u"});
}

TEST(StateDictTest, RefusesWhatHoldsNoStateDict) {
  expect_bare_refused("]", {"holds a list instead of a state_dict"});
  expect_bare_refused("N", {"holds a plain value"});
  expect_both_refused(tensor(), {"holds one tensor"});
  expect_bare_refused(call(global("my.models", "Net"), ")"), {"an object of a class"});
  expect_bare_refused("}", {"holds no state_dict: it is an empty dictionary"});
  expect_bare_refused(dict({text("epoch"), "K\x03", text("args"), "N"}),
                      {"holds no state_dict: its keys are epoch, args"});
  std::vector<std::string> many;
  for (int i = 0; i < 9; ++i) many.insert(many.end(), {integer(i), "N"});
  expect_bare_refused(dict(many), {"0, 1, 2, 3, 4, 5, 6, 7, .."});
}

TEST(StateDictTest, RefusesNamesThatAreNoText) {
  expect_both_refused(dict({"K\x05", tensor()}), {"entry 0", "no string"});
  expect_both_refused(dict({text("w"), tensor(), text("\xff"), tensor()}), {"entry 1", "no UTF-8"});
}

TEST(StateDictTest, RefusesViewsOutsideTheirStorage) {
  const auto refused = [](int64_t offset, const std::vector<int64_t>& shape,
                          const std::vector<int64_t>& strides,
                          std::initializer_list<std::string_view> parts) {
    Tensor t;
    t.offset = offset;
    t.shape = shape;
    t.strides = strides;
    expect_both_refused(dict({text("w"), tensor(t)}), parts);
  };
  refused(1, {6}, {1}, {"tensor \"w\" reaches outside its storage", "[6]", "in 6 numbers"});
  refused(0, {2, 3}, {4, 1}, {"tensor \"w\" reaches outside"});
  refused(7, {0}, {1}, {"tensor \"w\" reaches outside"});
  refused(6, {}, {}, {"tensor \"w\" reaches outside"});
  refused(0, {2}, {INT64_MAX}, {"reaches outside"});
  refused(INT64_MAX, {2}, {1}, {"reaches outside"});
  refused(0, {3}, {INT64_MAX}, {"reaches outside"});
  refused(0, {INT64_MAX, INT64_MAX}, {0, 0}, {"tensor \"w\"", "too large"});
  refused(0, {0, INT64_MAX, INT64_MAX}, {1, 1, 1}, {"tensor \"w\"", "too large"});
  refused(0, {7}, {0}, {"tensor \"w\" repeats"});
  refused(0, {2}, {0}, {"tensor \"w\" repeats"});
  refused(0, {3, 3}, {1, 1}, {"tensor \"w\" repeats"});
  refused(-1, {2}, {1}, {"tensor \"w\" has -1 as offset"});
  refused(0, {-2}, {1}, {"tensor \"w\" has -2 as size"});
  refused(0, {2}, {-1}, {"tensor \"w\" has -1 as stride"});
  refused(0, {2, 3}, {1}, {"tensor \"w\" has 2 sizes and 1 strides"});
  refused(0, std::vector<int64_t>(17, 1), std::vector<int64_t>(17, 1), {"more than 16 dimensions"});
}

TEST(StateDictTest, RefusesPartsOfATensorOfAnotherKind) {
  const auto rebuilt = [](const std::string& offset, const std::string& size) {
    return dict({text("w"), call(global("torch._utils", "_rebuild_tensor_v2"),
                                 tuple({storage({}), offset, size, integers({1})}))});
  };
  expect_both_refused(rebuilt("N", integers({1})), {"tensor \"w\"", "offset"});
  expect_both_refused(rebuilt("K\x01", "]"), {"tensor \"w\" has no tuple as size"});
  expect_both_refused(rebuilt("K\x01", tuple({"N"})), {"tensor \"w\"", "integers as size"});
}

TEST(StateDictTest, RefusesStoragesOfAnotherSizeThanTheySay) {
  Tensor t;
  t.in.numel = 7;
  expect_refused(zip(dict({text("w"), tensor(t)})),
                 {"tensor \"w\" has 7 numbers of F32", "24 bytes"});
  expect_refused(legacy(dict({text("w"), tensor(t)})), {"6 numbers in storage \"0\"; 7 are due"});
  t.in.numel = INT64_MAX;
  expect_refused(zip(dict({text("w"), tensor(t)})),
                 {"tensor \"w\" has 9223372036854775807 numbers"});
  t.in = {"FloatStorage", "9"};
  expect_refused(zip(dict({text("w"), tensor(t)})), {"lacks the storage \"9\""});
}

TEST(PthZipTest, RefusesArchivesThatTorchDidNotSave) {
  auto parts = members(one("w"));
  parts.push_back({"archive/byteorder", "big"});
  expect_refused(make_zip(parts), {"byte order \"big\""});
  parts.back().data = "little";
  EXPECT_EQ(read(make_zip(parts)).tensors.size(), 1U);
  parts.back() = {"archive/constants.pkl", ""};
  expect_refused(make_zip(parts), {"is a TorchScript archive; save the state_dict instead"});
  parts.back() = {"archive/code/x.py", ""};
  expect_refused(make_zip(parts), {"is a TorchScript archive; save the state_dict instead"});
  parts.back() = {"other/data.pkl", ""};
  expect_refused(make_zip(parts), {"two data.pkl"});
  parts.back() = {"other/file", ""};
  expect_refused(make_zip(parts), {"\"other/file\" outside the folder \"archive\""});
  expect_refused(make_zip({{"notes.txt", "hi"}}), {"zip without data.pkl"});
}

TEST(PthZipTest, FindsOutDamageInWhatItReadsOnly) {
  auto parts = members(one("w"));
  parts.push_back({"archive/data/1", "unused"});
  parts.back().crc = 1;
  EXPECT_EQ(read(make_zip(parts)).tensors.size(), 1U);
  parts[1].crc = 1;
  expect_refused(make_zip(parts), {"\"archive/data/0\" is damaged"});
  parts = members(one("w"));
  parts[0].method = 8;
  expect_refused(make_zip(parts), {"\"archive/data.pkl\" is compressed", "torch.save stores"});
  parts = members(one("w"));
  parts[0].crc = 1;
  expect_refused(make_zip(parts), {"\"archive/data.pkl\" is damaged"});
}

TEST(PthLegacyTest, RefusesStreamsThatAreNotSound) {
  const auto with = [](const std::function<void(Legacy&)>& change) {
    Legacy parts;
    change(parts);
    return legacy(one("w"), parts);
  };
  expect_refused(with([](Legacy& l) { l.protocol = integer(1000); }),
                 {"legacy protocol than 1001"});
  expect_refused(with([](Legacy& l) {
                   l.system = dict({text("little_endian"), "\x89"});
                 }),
                 {"little-endian"});
  expect_refused(with([](Legacy& l) { l.system = "N"; }), {"little-endian"});
  expect_refused(with([](Legacy& l) { l.keys = "N"; }), {"no list of its storages"});
  expect_refused(with([](Legacy& l) { l.keys = "](" + text("5") + "e"; }), {"lists a storage"});
  expect_refused(with([](Legacy& l) { l.keys = "](NNe"; }), {"lists a storage"});
  expect_refused(with([](Legacy& l) { l.keys = "](" + text("0") + text("0") + "e"; }),
                 {"\"0\" twice"});
  expect_refused(with([](Legacy& l) {
                   l.keys = "]";
                   l.storages = "";
                 }),
                 {"lacks the storage \"0\""});
  expect_refused(with([](Legacy& l) { l.storages = number<int64_t>(5) + floats(6); }),
                 {"5 numbers in storage \"0\"; 6 are due"});
  expect_refused(with([](Legacy& l) { l.storages += "x"; }), {"1 bytes after its last storage"});
  const std::string whole_file = legacy(one("w"));
  for (size_t size = 0; size < whole_file.size(); ++size) {
    expect_refused(whole_file.substr(0, size), {"file: "});
  }
  expect_refused(whole_file.substr(0, whole_file.size() - 1), {"cut short in storage \"0\""});
  expect_refused(whole_file.substr(0, whole_file.size() - 25), {"cut short before storage \"0\""});
}

TEST(PthLegacyTest, RefusesAStorageOfTwoTypesAndViewsOfStorages) {
  Tensor other;
  other.in.type = "IntStorage";
  expect_refused(legacy(dict({text("a"), tensor(), text("b"), tensor(other)})),
                 {"storage \"0\" two types"});
  Tensor view;
  view.in.view = tuple({text("1"), integer(0), integer(6)});
  expect_refused(legacy(dict({text("a"), tensor(view)})), {"\"0\" is a view of another"});
  view.in.view = "N";
  EXPECT_EQ(read(legacy(dict({text("a"), tensor(view)}))).tensors.size(), 1U);
}

TEST(PthTestOfOtherFiles, RefusesThemInASentence) {
  expect_refused("hello", {"no file of torch.save"});
  std::string tar(512, '\0');
  tar.replace(257, 5, "ustar");
  expect_refused(tar, {"is a tar file, as PyTorch before 0.1.10 wrote them"});
  EXPECT_FALSE(looks_like_pth(own_bytes("file", to_bytes("hello"))));
  EXPECT_TRUE(looks_like_pth(own_bytes("file", to_bytes(tar))));
}

}  // namespace
}  // namespace adjoin::io
