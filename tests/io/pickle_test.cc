#include "adjoin/io/pickle.h"

#include <gtest/gtest.h>

#include "io/make_pickle.h"
#include "support/expect_error.h"

namespace adjoin::io {
namespace {

using namespace pickled;
using Kind = PickleKind;

/// A pickle and the machine its value lives in.
class Unpickled {
 public:
  explicit Unpickled(std::string bytes, size_t budget = size_t{64} << 20)
      : bytes_(std::move(bytes)),
        budget_("file: its pickle", budget),
        machine_(bytes_, origin_, budget_),
        value(machine_.run()) {}

  const PickleMachine& machine() const { return machine_; }

 private:
  const std::string origin_ = "file";
  const std::string bytes_;
  MemoryBudget budget_;
  PickleMachine machine_;

 public:
  const PickleValue value;
};

void expect_refused(const std::string& bytes, std::initializer_list<std::string_view> parts,
                    size_t budget = size_t{64} << 20) {
  expect_error(ErrorKind::kData, {"file: its pickle"}, [&] { Unpickled(bytes, budget); });
  expect_error(ErrorKind::kData, parts, [&] { Unpickled(bytes, budget); });
}

int64_t integer_of(const std::string& bytes) {
  const Unpickled run(bytes);
  EXPECT_EQ(run.value.kind, Kind::kInt);
  return run.value.integer;
}

TEST(PickleTest, ReadsIntegersOfEveryForm) {
  EXPECT_EQ(integer_of("K\x07."), 7);
  EXPECT_EQ(integer_of("M\x01\x02."), 513);
  EXPECT_EQ(integer_of("J\xfe\xff\xff\xff."), -2);
  EXPECT_EQ(integer_of(std::string("\x8a\x00.", 3)), 0);
  EXPECT_EQ(integer_of("\x8a\x01\xff."), -1);
  EXPECT_EQ(integer_of(std::string("\x8a\x02\xff\x00.", 5)), 255);
  EXPECT_EQ(integer_of("\x8b" + number<int32_t>(8) + number(INT64_MIN) + "."), INT64_MIN);
  EXPECT_EQ(integer_of("I-42\n."), -42);
  EXPECT_EQ(integer_of("L42L\n."), 42);
  EXPECT_EQ(Unpickled("L99999999999999999999999L\n.").value.kind, Kind::kOpaque);
  EXPECT_EQ(Unpickled("\x8a\x09"
                      "123456789.")
                .value.kind,
            Kind::kLong);
}

TEST(PickleTest, ReadsTruthValuesAndNone) {
  EXPECT_EQ(Unpickled("\x88.").value.integer, 1);
  EXPECT_EQ(Unpickled("\x89.").value.integer, 0);
  EXPECT_EQ(Unpickled("I01\n.").value.kind, Kind::kBool);
  EXPECT_EQ(Unpickled("N.").value.kind, Kind::kNone);
}

TEST(PickleTest, ReadsTextOfEveryForm) {
  const std::string length8 = number<uint64_t>(2);
  for (const std::string& bytes :
       {std::string("U\x02hi."), "X" + number<uint32_t>(2) + "hi.",
        "T" + number<uint32_t>(2) + "hi.", std::string("\x8c\x02hi."), "\x8d" + length8 + "hi.",
        std::string("S'hi'\n."), std::string("S\"hi\"\n."), std::string("Vhi\n.")}) {
    EXPECT_TRUE(Unpickled(bytes).value.is_string("hi")) << bytes;
  }
}

TEST(PickleTest, KeepsWhatItNeedNotKnowOpaque) {
  const std::string eight(8, 'x');
  for (const std::string& bytes :
       {"G" + eight + ".", std::string("F1.5e3\n."), std::string("C\x01x."),
        "B" + number<uint32_t>(1) + "x.", "\x8e" + number<uint64_t>(1) + "x.",
        "\x96" + number<uint64_t>(1) + "x.", std::string("\x8f(K\x01\x90."),
        std::string("(K\x01\x91."), std::string("S'a\\n'\n."), std::string("V\\u0041\n."),
        global("argparse", "Namespace") + ".", global("a", "B") + ")\x81}b.",
        global("a", "B") + ")}\x92.", "(" + global("a", "B") + "K\x01o.",
        std::string("(K\x01ia\nB\n."), call(global("a", "b"), tuple({text("x")})) + ".",
        global("a", "b") + ")R(K\x01"
                           "e."}) {
    EXPECT_EQ(Unpickled(bytes).value.kind, Kind::kOpaque) << testing::PrintToString(bytes);
  }
}

TEST(PickleTest, BuildsListsTuplesAndDictionaries) {
  EXPECT_EQ(Unpickled("](K\x01K\x02"
                      "e.")
                .value.items->values.size(),
            2U);
  EXPECT_EQ(Unpickled("]K\x01"
                      "a.")
                .value.items->values.size(),
            1U);
  EXPECT_EQ(Unpickled("(K\x01K\x02l.").value.kind, Kind::kList);
  EXPECT_EQ(Unpickled("(K\x01K\x02t.").value.items->values[1].integer, 2);
  EXPECT_EQ(Unpickled("K\x01K\x02K\x03\x87.").value.items->values[2].integer, 3);
  EXPECT_EQ(Unpickled("K\x01K\x02\x86.").value.items->values[0].integer, 1);
  EXPECT_EQ(Unpickled("K\x01\x85.").value.kind, Kind::kTuple);
  EXPECT_EQ(Unpickled(").").value.items->values.size(), 0U);
  EXPECT_EQ(Unpickled("}K\x01K\x02s.").value.items->values.size(), 2U);
  EXPECT_EQ(Unpickled("(K\x01K\x02"
                      "d.")
                .value.kind,
            Kind::kDict);
  EXPECT_EQ(Unpickled("K\x01(K\x02K\x03"
                      "1.")
                .value.integer,
            1);
  EXPECT_EQ(Unpickled("K\x01K\x02"
                      "0.")
                .value.integer,
            1);
  EXPECT_EQ(Unpickled("K\x01"
                      "2\x86.")
                .value.items->values[1]
                .integer,
            1);
}

TEST(PickleTest, BuildsOrderedDictionaries) {
  const std::string type = global("collections", "OrderedDict");
  const std::string pair = text("k") + "K\x01\x86";
  EXPECT_EQ(Unpickled(call(type, ")") + ".").value.kind, Kind::kDict);
  EXPECT_EQ(Unpickled(call(type, "](" + pair + "e\x85") + ".").value.items->values.size(), 2U);
  EXPECT_EQ(Unpickled(call(type, ")") + "(" + text("k") + "K\x01u}b.").value.items->values.size(),
            2U);
  expect_refused(call(type, "K\x01\x85") + ".", {"OrderedDict", "list of pairs"});
  expect_refused(call(type,
                      "](K\x01"
                      "e\x85") +
                     ".",
                 {"OrderedDict", "list of pairs"});
}

TEST(PickleTest, RemembersWhatIsInTheMemo) {
  EXPECT_EQ(integer_of("K\x05q\x03"
                       "0h\x03."),
            5);
  EXPECT_EQ(integer_of("K\x05r" + number<uint32_t>(70000) + "0j" + number<uint32_t>(70000) + "."),
            5);
  EXPECT_EQ(integer_of("K\x05p12\n0g12\n."), 5);
  EXPECT_EQ(integer_of(std::string("K\x05\x94"
                                   "0h\x00.",
                                   7)),
            5);
  EXPECT_EQ(integer_of("K\x05q\x01K\x06q\x01h\x01."), 6);
}

TEST(PickleTest, MakesCyclesThatEndWithTheMachine) {
  const Unpickled run(
      "]q\x01h\x01"
      "a.");
  EXPECT_EQ(run.value.items->values[0].items, run.value.items);
}

TEST(PickleTest, SurvivesAMillionListsInsideEachOther) {
  const size_t depth = 1'000'000;
  const std::string deep = std::string(depth, ']') + std::string(depth - 1, 'a') + ".";
  EXPECT_EQ(Unpickled(deep, size_t{1} << 30).value.kind, Kind::kList);
  expect_refused(deep, {"needs more memory than 12000000 bytes"}, 12'000'000);
}

TEST(PickleTest, ChargesEverythingItKeeps) {
  const size_t count = 100'000;
  for (const std::string& op : {std::string("N"), std::string("("), std::string(")"),
                                std::string("}"), std::string("]"), std::string("N\x94"),
                                std::string("](K\x01"
                                            "e0"),
                                text("x") + "\x94"}) {
    std::string bytes;
    for (size_t i = 0; i < count; ++i) bytes += op;
    expect_refused(bytes + ".", {"needs more memory"}, 1 << 20);
  }
}

TEST(PickleTest, GivesBackWhatItDrops) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) bytes += "N0";
  EXPECT_EQ(Unpickled(bytes + "N.", 1 << 10).value.kind, Kind::kNone);
}

TEST(PickleTest, RefusesBrokenPickles) {
  expect_refused("", {"byte 0", "without STOP"});
  expect_refused("K\x01", {"without STOP"});
  expect_refused(".", {"stack is empty"});
  expect_refused("(.", {"mark where a value is due"});
  expect_refused("0", {"stack is empty"});
  expect_refused("R.", {"stack is empty"});
  expect_refused("K\x01R.", {"stack is empty"});
  expect_refused("(R.", {"mark where"});
  expect_refused("K\x01\x87.", {"stack is empty"});
  expect_refused("K\x01t.", {"no mark"});
  expect_refused("e.", {"no mark"});
  expect_refused("(e.", {"stack is empty"});
  expect_refused("a.", {"stack is empty"});
  expect_refused("](a.", {"mark where"});
  expect_refused(
      "N(K\x01"
      "e.",
      {"is no list"});
  expect_refused("]K\x01K\x01s.", {"is no dictionary"});
  expect_refused("}(K\x01u.", {"key of a dictionary has no value"});
  expect_refused(
      "(K\x01"
      "d.",
      {"key of a dictionary has no value"});
  expect_refused("h\x05.", {"memo holds nothing at 5"});
  expect_refused("gx\n.", {"no place of the memo"});
  expect_refused("K\x01p-1\n.", {"no place of the memo"});
  expect_refused("q\x01.", {"stack is empty"});
  expect_refused("K", {"1 bytes are due where 0 are left"});
  expect_refused("X" + number(UINT32_MAX) + "x", {"4294967295 bytes are due"});
  expect_refused("\x8d" + number(UINT64_MAX) + "x", {"18446744073709551615 bytes are due"});
  expect_refused("T" + number<int32_t>(-1) + "x", {"length -1 is negative"});
  expect_refused("\x8b" + number<int32_t>(-1) + "x", {"length -1 is negative"});
  expect_refused("\x95" + number<uint64_t>(100) + "N.", {"frame of 100 bytes"});
  expect_refused("I12", {"line has no end"});
  expect_refused("Ix\n.", {"\"x\" is no integer"});
  expect_refused("I\n.", {"is no integer"});
  expect_refused("Fx\n.", {"\"x\" is no number"});
  expect_refused("Shi\n.", {"no quotes"});
  expect_refused("\x80\x06N.", {"protocol 6"});
  expect_refused("\xff.", {"no opcode 0xff"});
  expect_refused("(o.", {"no class"});
  expect_refused("N)R.", {"no function"});
  expect_refused("K\x01K\x01\x93.", {"no string"});
  expect_refused("](K\x01\x90.", {"no set"});
  expect_refused(global("collections", "OrderedDict") + "NR.", {"no tuple"});
}

TEST(PickleTest, RefusesByNameWhatTorchDoesNotWrite) {
  for (const auto& [code, name] : {std::pair{"P", "PERSID"},
                                   {"\x82", "EXT1"},
                                   {"\x83", "EXT2"},
                                   {"\x84", "EXT4"},
                                   {"\x97", "NEXT_BUFFER"},
                                   {"\x98", "READONLY_BUFFER"}}) {
    expect_refused(std::string("N") + code + "x\n.", {name, "at byte 1"});
  }
}

TEST(PickleTest, RefusesCallsOfWhatNoCheckpointNeeds) {
  for (const std::string module : {"os",
                                   "posix",
                                   "nt",
                                   "subprocess",
                                   "sys",
                                   "shutil",
                                   "socket",
                                   "importlib",
                                   "runpy",
                                   "ctypes",
                                   "pty",
                                   "webbrowser",
                                   "multiprocessing",
                                   "multiprocessing.pool",
                                   "asyncio.events",
                                   "pip",
                                   "http.client",
                                   "urllib.request",
                                   "requests",
                                   "requests.api"}) {
    const std::string words = "its pickle calls " + module + ".run, which no checkpoint needs";
    expect_refused(call(global(module, "run"), tuple({text("x")})) + ".",
                   {words, "nothing was run"});
    expect_refused("(" + text("x") + "i" + module + "\nrun\n.", {words});
    expect_refused("(" + global(module, "run") + "o.", {words});
    expect_refused(global(module, "run") + ")\x81.", {words});
    expect_refused(global(module, "run") + ")}\x92.", {words});
    expect_refused(
        "\x8c" + std::string(1, static_cast<char>(module.size())) + module + "\x8c\x03run\x93)R.",
        {words});
    EXPECT_EQ(Unpickled(global(module, "run") + ".").value.kind, Kind::kForbidden);
  }
  for (const std::string name :
       {"eval", "exec", "compile", "open", "__import__", "execfile", "input", "breakpoint"}) {
    expect_refused(call(global("builtins", name), ")") + ".", {"calls builtins." + name});
    expect_refused(call(global("__builtin__", name), ")") + ".", {"calls __builtin__." + name});
  }
  EXPECT_EQ(Unpickled(call(global("builtins", "set"), ")") + ".").value.kind, Kind::kOpaque);
  EXPECT_EQ(Unpickled(call(global("oscar", "run"), ")") + ".").value.kind, Kind::kOpaque);
  EXPECT_EQ(Unpickled(call(global("code.config", "Args"), ")") + ".").value.kind, Kind::kOpaque);
  expect_refused(call(global("code", "interact"), ")") + ".", {"calls code.interact"});
}

TEST(PickleTest, RefusesGlobalsWithNamesWithoutEnd) {
  expect_refused(global(std::string(2000, 'a'), "b") + ".", {"more than 1024 bytes"});
  std::string many = text(std::string(1 << 20, 'a')) + "q\x01";  // a name recalled again and again
  for (int i = 0; i < 100000; ++i)
    many +=
        "h\x01h\x01\x93"
        "0";
  expect_refused(many + ".", {"more than 1024 bytes"});
}

TEST(PickleTest, KnowsStoragesOfEveryType) {
  for (const auto& [type, dtype] : {std::pair{"Float", Dtype::kF32},
                                    {"Double", Dtype::kF64},
                                    {"Half", Dtype::kF16},
                                    {"BFloat16", Dtype::kBF16},
                                    {"Long", Dtype::kI64},
                                    {"Int", Dtype::kI32},
                                    {"Short", Dtype::kI16},
                                    {"Char", Dtype::kI8},
                                    {"Byte", Dtype::kU8},
                                    {"Bool", Dtype::kBool}}) {
    for (const char* module : {"torch", "torch.storage", "torch.cuda"}) {
      Storage stored{std::string(type) + "Storage", "7", 9};
      stored.module = module;
      const Unpickled run(storage(stored) + ".");
      ASSERT_EQ(run.value.kind, Kind::kStorage) << type;
      EXPECT_EQ(storage_of(run.value).dtype, dtype);
      EXPECT_EQ(storage_of(run.value).key, "7");
      EXPECT_EQ(storage_of(run.value).numel, 9);
      EXPECT_EQ(run.machine().storages().size(), 1U);
    }
  }
  EXPECT_EQ(Unpickled(storage({"UntypedStorage"}) + ".").value.kind, Kind::kOpaque);
  EXPECT_EQ(Unpickled(tuple({text("module"), text("x")}) + "Q.").value.kind, Kind::kOpaque);
}

TEST(PickleTest, RefusesBrokenStorages) {
  const std::string type = global("torch", "FloatStorage");
  expect_refused("NQ.", {"persistent id is no tuple"});
  expect_refused(")Q.", {"persistent id is no tuple"});
  expect_refused(tuple({text("storage"), type, text("0"), text("cpu")}) + "Q.", {"has 4 parts"});
  expect_refused(tuple({text("storage"), type, "K\x01", text("cpu"), "K\x01"}) + "Q.", {"key"});
  expect_refused(storage({"FloatStorage", std::string(300, 'k')}) + ".", {"short string"});
  expect_refused(storage({"FloatStorage", "0", -1}) + ".", {"no count"});
  expect_refused(tuple({text("storage"), type, text("0"), text("cpu"), "N"}) + "Q.", {"no count"});
  expect_refused(storage({"FloatStorage", "0", 6, "K\x01"}) + ".", {"view of another"});
  EXPECT_EQ(Unpickled(storage({"FloatStorage", "0", 6, "N"}) + ".").value.kind, Kind::kStorage);
}

TEST(PickleTest, MakesTensorsAndParametersWithoutLookingInside) {
  const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2");
  EXPECT_EQ(Unpickled(tensor() + ".").value.kind, Kind::kTensor);
  for (const char* name : {"_rebuild_parameter", "_rebuild_parameter_with_state"}) {
    const std::string parameter = global("torch._utils", name);
    EXPECT_EQ(Unpickled(call(parameter, tuple({tensor(), "\x88", "}"})) + ".").value.kind,
              Kind::kTensor);
    EXPECT_EQ(Unpickled(call(parameter, tuple({"N"})) + ".").value.kind, Kind::kOpaque);
    expect_refused(call(parameter, ")") + ".", {"lacks its tensor"});
  }
  Tensor untyped;
  untyped.in.type = "UntypedStorage";
  EXPECT_EQ(Unpickled(tensor(untyped) + ".").value.kind, Kind::kOpaque);
  const std::string old = call(global("torch._utils", "_rebuild_tensor"),
                               tuple({storage({}), integer(0), integers({6}), integers({1})}));
  EXPECT_EQ(Unpickled(old + ".").value.kind, Kind::kTensor);
  EXPECT_EQ(Unpickled(call(global("torch", "Size"), tuple({integers({2})})) + ".").value.kind,
            Kind::kTuple);
  expect_refused(call(rebuild, tuple({storage({}), "K\x01"})) + ".", {"a tensor lacks"});
  expect_refused(call(rebuild, tuple({"N", "N", "N", "N"})) + ".", {"storage of a tensor"});
}

}  // namespace
}  // namespace adjoin::io
