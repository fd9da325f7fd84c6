// One row per opcode. Floats, bytes and sets are never looked at: they become opaque values.

#include <array>
#include <charconv>

#include "adjoin/core/text.h"
#include "adjoin/io/pickle.h"

namespace adjoin::io {
namespace {

using Kind = PickleKind;
using Machine = PickleMachine;

void load_proto(Machine& m) {
  constexpr unsigned char kNewest = 5;
  const auto version = m.take_number<unsigned char>();
  if (version > kNewest) m.fail("protocol " + std::to_string(version) + " is newer than 5");
}

/// Frames help those who read from a pipe; here only their length is checked.
void load_frame(Machine& m) {
  const auto length = m.take_number<uint64_t>();
  if (length > m.left()) m.fail("a frame of " + std::to_string(length) + " bytes is cut short");
}

/// I: an integer, or a truth value as 00 or 01.
void load_int_line(Machine& m) {
  const std::string_view line = m.take_line();
  if (line == "00" || line == "01") {
    m.push_bool(line == "01");
  } else {
    m.push_decimal(line);
  }
}

void load_float_line(Machine& m) {
  const std::string_view line = m.take_line();
  double value = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (failure == std::errc::invalid_argument || end != line.data() + line.size()) {
    m.fail(in_quotes(line) + " is no number");
  }
  m.push_kind(Kind::kOpaque);
}

/// Text with escapes would have to be copied, and no tensor comes with protocol 0: opaque.
void push_plain_text(Machine& m, std::string_view text) {
  const bool is_plain = text.find('\\') == std::string_view::npos && is_utf8(text);
  if (is_plain) {
    m.push_string(text);
  } else {
    m.push_kind(Kind::kOpaque);
  }
}

void load_string_line(Machine& m) {
  const std::string_view line = m.take_line();
  const bool is_quoted = line.size() >= 2 && (line.front() == '\'' || line.front() == '"') &&
                         line.front() == line.back();
  if (!is_quoted) m.fail("a string of protocol 0 has no quotes");
  push_plain_text(m, line.substr(1, line.size() - 2));
}

/// V: bytes above 127 are Latin-1 there.
void load_unicode_line(Machine& m) {
  const std::string_view line = m.take_line();
  for (const char c : line) {
    if (static_cast<unsigned char>(c) >= 0x80) return m.push_kind(Kind::kOpaque);
  }
  push_plain_text(m, line);
}

/// Bytes behind their length.
template <class Length>
void load_bytes(Machine& m) {
  m.take(m.take_number<Length>());
  m.push_kind(Kind::kOpaque);
}

template <class Length>
void load_text(Machine& m) {
  m.push_string(m.take(m.take_number<Length>()));
}

void load_global_line(Machine& m) {
  const std::string_view module = m.take_line();
  m.push_global(module, m.take_line());
}

/// The state of an object: a state_dict's _metadata, or what an opaque value is made of.
void build(Machine& m) {
  m.pop();
  m.top();
}

void add_items(Machine& m) {
  m.drop_marked();
  if (m.top().kind != Kind::kOpaque) m.fail("what takes the items of a set is no set");
}

void make_frozen_set(Machine& m) {
  m.drop_marked();
  m.push_kind(Kind::kOpaque);
}

constexpr PickleOpcode kOpcodes[] = {
    {0x80, "PROTO", load_proto},
    {0x95, "FRAME", load_frame},
    {'.', "STOP", [](Machine& m) { m.stop(); }},
    {'(', "MARK", [](Machine& m) { m.push_kind(Kind::kMark); }},
    {'0', "POP", [](Machine& m) { m.pop_any(); }},
    {'1', "POP_MARK", [](Machine& m) { m.drop_marked(); }},
    {'2', "DUP", [](Machine& m) { m.push(m.top()); }},
    // None, truth values, numbers
    {'N', "NONE", [](Machine& m) { m.push_kind(Kind::kNone); }},
    {0x88, "NEWTRUE", [](Machine& m) { m.push_bool(true); }},
    {0x89, "NEWFALSE", [](Machine& m) { m.push_bool(false); }},
    {'I', "INT", load_int_line},
    {'J', "BININT", [](Machine& m) { m.push_int(m.take_number<int32_t>()); }},
    {'K', "BININT1", [](Machine& m) { m.push_int(m.take_number<uint8_t>()); }},
    {'M', "BININT2", [](Machine& m) { m.push_int(m.take_number<uint16_t>()); }},
    {'L', "LONG", [](Machine& m) { m.push_decimal(m.take_line()); }},
    {0x8a, "LONG1", [](Machine& m) { m.push_long(m.take(m.take_number<uint8_t>())); }},
    {0x8b, "LONG4", [](Machine& m) { m.push_long(m.take(m.take_signed_length())); }},
    {'F', "FLOAT", load_float_line},
    {'G', "BINFLOAT",
     [](Machine& m) {
       m.take(sizeof(double));
       m.push_kind(Kind::kOpaque);
     }},
    // text and bytes
    {'S', "STRING", load_string_line},
    {'T', "BINSTRING", [](Machine& m) { m.push_string(m.take(m.take_signed_length())); }},
    {'U', "SHORT_BINSTRING", load_text<uint8_t>},
    {'V', "UNICODE", load_unicode_line},
    {'X', "BINUNICODE", load_text<uint32_t>},
    {0x8c, "SHORT_BINUNICODE", load_text<uint8_t>},
    {0x8d, "BINUNICODE8", load_text<uint64_t>},
    {'B', "BINBYTES", load_bytes<uint32_t>},
    {'C', "SHORT_BINBYTES", load_bytes<uint8_t>},
    {0x8e, "BINBYTES8", load_bytes<uint64_t>},
    {0x96, "BYTEARRAY8", load_bytes<uint64_t>},
    // lists, tuples, dictionaries, sets
    {']', "EMPTY_LIST", [](Machine& m) { m.push_empty(Kind::kList); }},
    {'l', "LIST", [](Machine& m) { m.make_marked(Kind::kList); }},
    {'a', "APPEND", [](Machine& m) { m.extend_last(Kind::kList, 1); }},
    {'e', "APPENDS", [](Machine& m) { m.extend_marked(Kind::kList); }},
    {')', "EMPTY_TUPLE", [](Machine& m) { m.push_empty(Kind::kTuple); }},
    {'t', "TUPLE", [](Machine& m) { m.make_marked(Kind::kTuple); }},
    {0x85, "TUPLE1", [](Machine& m) { m.make_tuple(1); }},
    {0x86, "TUPLE2", [](Machine& m) { m.make_tuple(2); }},
    {0x87, "TUPLE3", [](Machine& m) { m.make_tuple(3); }},
    {'}', "EMPTY_DICT", [](Machine& m) { m.push_empty(Kind::kDict); }},
    {'d', "DICT", [](Machine& m) { m.make_marked(Kind::kDict); }},
    {'s', "SETITEM", [](Machine& m) { m.extend_last(Kind::kDict, 2); }},
    {'u', "SETITEMS", [](Machine& m) { m.extend_marked(Kind::kDict); }},
    {0x8f, "EMPTY_SET", [](Machine& m) { m.push_kind(Kind::kOpaque); }},
    {0x90, "ADDITEMS", add_items},
    {0x91, "FROZENSET", make_frozen_set},
    // the memo
    {'p', "PUT", [](Machine& m) { m.memoize(m.take_index_line()); }},
    {'q', "BINPUT", [](Machine& m) { m.memoize(m.take_number<uint8_t>()); }},
    {'r', "LONG_BINPUT", [](Machine& m) { m.memoize(m.take_number<uint32_t>()); }},
    {0x94, "MEMOIZE", [](Machine& m) { m.memoize_next(); }},
    {'g', "GET", [](Machine& m) { m.recall(m.take_index_line()); }},
    {'h', "BINGET", [](Machine& m) { m.recall(m.take_number<uint8_t>()); }},
    {'j', "LONG_BINGET", [](Machine& m) { m.recall(m.take_number<uint32_t>()); }},
    // globals and what is made with them
    {'c', "GLOBAL", load_global_line},
    {0x93, "STACK_GLOBAL", [](Machine& m) { m.push_stack_global(); }},
    {'R', "REDUCE", [](Machine& m) { m.reduce(); }},
    {0x81, "NEWOBJ", [](Machine& m) { m.reduce(); }},
    {0x92, "NEWOBJ_EX", [](Machine& m) { m.reduce_with_keywords(); }},
    {'o', "OBJ", [](Machine& m) { m.make_object(); }},
    {'i', "INST", [](Machine& m) { m.make_instance(); }},
    {'b', "BUILD", build},
    {'Q', "BINPERSID", [](Machine& m) { m.load_persistent(); }},
    // nothing torch.save writes
    {'P', "PERSID", nullptr},
    {0x82, "EXT1", nullptr},
    {0x83, "EXT2", nullptr},
    {0x84, "EXT4", nullptr},
    {0x97, "NEXT_BUFFER", nullptr},
    {0x98, "READONLY_BUFFER", nullptr},
};

constexpr auto kByCode = [] {
  std::array<const PickleOpcode*, 256> table{};
  for (const PickleOpcode& opcode : kOpcodes) table[opcode.code] = &opcode;
  return table;
}();

}  // namespace

const PickleOpcode* find_opcode(unsigned char code) { return kByCode[code]; }

}  // namespace adjoin::io
