#pragma once

// A reader of Python pickles that runs nothing. It builds lists, tuples, dictionaries, strings and
// integers, and recognises the few globals a state_dict is made of; whatever else a pickle makes is
// an opaque value. Values are 16 bytes, text stays in the file, and everything is charged to a
// budget. Nothing recurses: depth and cycles of the data do not matter.
//
// Follows the opcodes of CPython's Lib/pickletools.py, protocols 0 to 5.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adjoin/io/limits.h"
#include "adjoin/io/tensor_file.h"

namespace adjoin::io {

struct PickleValue;

/// What a list, tuple or dictionary holds; a dictionary alternates keys and values.
struct PickleItems {
  std::vector<PickleValue> values;
};

enum class PickleKind : uint8_t {
  kMark,
  kNone,
  kBool,
  kInt,
  kLong,  ///< beyond 64 bits: its little-endian bytes
  kString,
  kList,
  kTuple,
  kDict,
  kFunction,     ///< a global that is understood: a PickleFunction
  kStorageType,  ///< torch.FloatStorage and the like: a Dtype
  kForbidden,    ///< a global that no checkpoint calls: its module and its name
  kStorage,      ///< ("storage", type, key, location, count), checked
  kTensor,       ///< (kStorage, offset, size, stride, ..), not checked
  kOpaque,
};

enum class PickleFunction : uint8_t { kOrderedDict, kRebuildTensor, kRebuildParameter, kSize };

struct PickleValue {
  explicit PickleValue(PickleKind its_kind = PickleKind::kOpaque, int64_t value = 0)
      : kind(its_kind), integer(value) {}
  PickleValue(PickleKind its_kind, PickleItems* its_items) : kind(its_kind), items(its_items) {}
  PickleValue(PickleKind its_kind, std::string_view its_text)
      : kind(its_kind), length(static_cast<uint32_t>(its_text.size())), text(its_text.data()) {}

  PickleKind kind;
  uint32_t length = 0;  ///< of kString and kLong
  union {
    int64_t integer;
    const char* text;
    PickleItems* items;
  };

  std::string_view string() const { return {text, length}; }
  bool is_string(std::string_view wanted) const {
    return kind == PickleKind::kString && string() == wanted;
  }
};
static_assert(sizeof(PickleValue) == 16);

/// What a kStorage says, read from its tuple.
struct PickledStorage {
  Dtype dtype = Dtype::kF32;
  std::string_view key;
  int64_t numel = 0;
};
PickledStorage storage_of(const PickleValue& value);

/// Runs pickles that follow each other in `bytes`. The values live as long as the machine.
class PickleMachine {
 public:
  /// `origin` opens every message; everything must outlive the machine.
  PickleMachine(std::string_view bytes, const std::string& origin, MemoryBudget& budget);

  /// The value of the next pickle. Error(kData) unless it is sound and calls nothing forbidden.
  PickleValue run();

  /// Where the next pickle begins, or what follows the last.
  size_t position() const { return position_; }

  /// Every storage of a known type that the pickles named, as often as they named it.
  const std::deque<PickleValue>& storages() const { return storages_; }

  // ---- what the opcodes are made of

  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void refuse_opcode(std::string_view name) const;

  size_t left() const { return bytes_.size() - position_; }

  /// The next `count` bytes.
  std::string_view take(uint64_t count);
  /// The next little-endian number.
  template <class T>
  T take_number() {
    T value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  /// A length that must not be negative.
  uint64_t take_signed_length();
  /// The text up to the next line break, which is skipped.
  std::string_view take_line();
  uint64_t take_index_line();

  void push(PickleValue value);
  void push_kind(PickleKind kind) { push(PickleValue(kind)); }
  void push_bool(bool value);
  void push_int(int64_t value);
  void push_string(std::string_view text);
  void push_long(std::string_view bytes);
  void push_decimal(std::string_view text);
  PickleValue pop();
  void pop_any();  ///< a value or a mark
  const PickleValue& top() const;

  /// The last `count` values become one tuple.
  void make_tuple(size_t count);
  /// Everything above the last mark, which goes too, becomes one list, tuple or dictionary.
  void make_marked(PickleKind kind);
  /// Everything above the last mark goes into the list or dictionary below it.
  void extend_marked(PickleKind kind);
  void extend_last(PickleKind kind, size_t count);
  void drop_marked();
  void push_empty(PickleKind kind);

  void memoize(uint64_t index);
  void memoize_next() { memoize(memo_.size()); }
  void recall(uint64_t index);

  // ---- pickle_globals.cc

  void push_global(std::string_view module, std::string_view name);
  void push_stack_global();
  /// Pops arguments and a callable, pushes the result. Nothing is ever run.
  void reduce();
  void reduce_with_keywords();
  void make_object();  ///< OBJ: class and arguments stand above the mark
  void make_instance();
  void load_persistent();

  void stop() { is_stopped_ = true; }

 private:
  size_t find_mark() const;
  void shrink(size_t size);
  PickleItems* new_items(size_t capacity);
  void append(PickleItems& items, PickleValue value);
  PickleValue call(const PickleValue& callable, const PickleValue& arguments);
  PickleValue ordered_dict(const PickleItems& arguments);
  void check_storage(const PickleItems& id) const;

  std::string_view bytes_;
  const std::string& origin_;
  MemoryBudget& budget_;
  size_t position_ = 0;
  size_t opcode_at_ = 0;
  bool is_stopped_ = false;
  std::deque<PickleValue> stack_;
  std::map<uint64_t, PickleValue> memo_;  // not hashed: a file could choose keys that collide
  std::deque<PickleItems> arena_;
  std::deque<PickleValue> storages_;
};

struct PickleOpcode {
  unsigned char code;
  std::string_view name;
  void (*run)(PickleMachine&);  ///< null: refused by name
};

/// Null when no protocol has such an opcode.
const PickleOpcode* find_opcode(unsigned char code);

}  // namespace adjoin::io
