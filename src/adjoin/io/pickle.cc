#include "adjoin/io/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"

namespace adjoin::io {
namespace {

// What the containers take for one element, a little over.
constexpr size_t kSlotBytes = sizeof(PickleValue) + 2;
constexpr size_t kArenaBytes = sizeof(PickleItems) + 4;
constexpr size_t kMemoBytes = sizeof(std::pair<uint64_t, PickleValue>) + 4 * sizeof(void*);

}  // namespace

PickleMachine::PickleMachine(std::string_view bytes, const std::string& origin,
                             MemoryBudget& budget)
    : bytes_(bytes), origin_(origin), budget_(budget) {}

PickleValue PickleMachine::run() {
  shrink(0);
  for (; !memo_.empty(); memo_.erase(memo_.begin())) budget_.refund_block(kMemoBytes);
  is_stopped_ = false;
  while (!is_stopped_) {
    opcode_at_ = position_;
    if (position_ == bytes_.size()) fail("it ends without STOP");
    const auto code = take_number<unsigned char>();
    const PickleOpcode* opcode = find_opcode(code);
    if (opcode == nullptr) fail(fmt::format("there is no opcode 0x{:02x}", code));
    if (opcode->run == nullptr) refuse_opcode(opcode->name);
    opcode->run(*this);
  }
  return pop();
}

void PickleMachine::fail(const std::string& what) const {
  throw Error(ErrorKind::kData,
              fmt::format("{}: its pickle is broken at byte {}: {}", origin_, opcode_at_, what));
}

void PickleMachine::refuse_opcode(std::string_view name) const {
  throw Error(ErrorKind::kData, fmt::format("{}: its pickle uses {} at byte {}, which torch.save "
                                            "does not write; save it again with torch.save",
                                            origin_, name, opcode_at_));
}

// ---- bytes

std::string_view PickleMachine::take(uint64_t count) {
  if (count > bytes_.size() - position_) {
    fail(fmt::format("{} bytes are due where {} are left", count, bytes_.size() - position_));
  }
  const std::string_view taken = bytes_.substr(position_, count);
  position_ += count;
  return taken;
}

uint64_t PickleMachine::take_signed_length() {
  const auto length = take_number<int32_t>();
  if (length < 0) fail(fmt::format("the length {} is negative", length));
  return static_cast<uint64_t>(length);
}

std::string_view PickleMachine::take_line() {
  const size_t end = bytes_.find('\n', position_);
  if (end == std::string_view::npos) fail("a line has no end");
  const std::string_view line = take(end - position_);
  take(1);
  return line;
}

uint64_t PickleMachine::take_index_line() {
  const std::string_view line = take_line();
  uint64_t index = 0;
  const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), index);
  if (failure != std::errc() || end != line.data() + line.size()) {
    fail(fmt::format("{} is no place of the memo", in_quotes(line)));
  }
  return index;
}

// ---- the stack

void PickleMachine::push(PickleValue value) {
  budget_.charge(kSlotBytes);
  stack_.push_back(value);
}

void PickleMachine::push_bool(bool value) { push(PickleValue(PickleKind::kBool, value ? 1 : 0)); }

void PickleMachine::push_int(int64_t value) { push(PickleValue(PickleKind::kInt, value)); }

void PickleMachine::push_string(std::string_view text) {
  if (text.size() > std::numeric_limits<uint32_t>::max()) fail("a string is longer than 4 GiB");
  push(PickleValue(PickleKind::kString, text));
}

/// A two's complement number of any length.
void PickleMachine::push_long(std::string_view bytes) {
  if (bytes.size() > sizeof(int64_t)) {
    push_string(bytes);
    stack_.back().kind = PickleKind::kLong;
    return;
  }
  const bool is_negative =
      !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80U) != 0;
  int64_t value = is_negative ? -1 : 0;
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
  push_int(value);
}

/// A number as text; one beyond 64 bits becomes opaque.
void PickleMachine::push_decimal(std::string_view text) {
  if (text.ends_with('L')) text.remove_suffix(1);
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc::invalid_argument || end != text.data() + text.size()) {
    fail(fmt::format("{} is no integer", in_quotes(text)));
  }
  if (failure == std::errc()) {
    push_int(value);
  } else {
    push_kind(PickleKind::kOpaque);
  }
}

PickleValue PickleMachine::pop() {
  const PickleValue value = top();
  pop_any();
  return value;
}

void PickleMachine::pop_any() {
  if (stack_.empty()) fail("the stack is empty where a value is due");
  shrink(stack_.size() - 1);
}

const PickleValue& PickleMachine::top() const {
  if (stack_.empty()) fail("the stack is empty where a value is due");
  if (stack_.back().kind == PickleKind::kMark) fail("there is a mark where a value is due");
  return stack_.back();
}

size_t PickleMachine::find_mark() const {
  for (size_t i = stack_.size(); i-- > 0;) {
    if (stack_[i].kind == PickleKind::kMark) return i;
  }
  fail("there is no mark on the stack");
}

void PickleMachine::shrink(size_t size) {
  budget_.refund(kSlotBytes * (stack_.size() - size));
  stack_.resize(size);
}

// ---- containers

PickleItems* PickleMachine::new_items(size_t capacity) {
  budget_.charge(kArenaBytes);
  if (capacity > 0) budget_.charge_block(capacity * sizeof(PickleValue));
  PickleItems& items = arena_.emplace_back();
  items.values.reserve(capacity);
  return &items;
}

/// Grows by doubling; old and new live side by side for a moment, and both are charged.
void PickleMachine::append(PickleItems& items, PickleValue value) {
  constexpr size_t kFirstCapacity = 4;
  const size_t capacity = items.values.capacity();
  if (items.values.size() == capacity) {
    const size_t wider = std::max(kFirstCapacity, 2 * capacity);
    budget_.charge_block(wider * sizeof(PickleValue));
    items.values.reserve(wider);
    if (capacity > 0) budget_.refund_block(capacity * sizeof(PickleValue));
  }
  items.values.push_back(value);
}

void PickleMachine::push_empty(PickleKind kind) { push(PickleValue(kind, new_items(0))); }

void PickleMachine::make_tuple(size_t count) {
  const PickleValue tuple(PickleKind::kTuple, new_items(count));
  for (size_t i = 0; i < count; ++i) tuple.items->values.push_back(pop());
  std::reverse(tuple.items->values.begin(), tuple.items->values.end());
  push(tuple);
}

void PickleMachine::make_marked(PickleKind kind) {
  const size_t mark = find_mark();
  const size_t count = stack_.size() - mark - 1;
  if (kind == PickleKind::kDict && count % 2 != 0) fail("a key of a dictionary has no value");
  const PickleValue value(kind, new_items(count));
  value.items->values.assign(stack_.begin() + static_cast<ptrdiff_t>(mark) + 1, stack_.end());
  shrink(mark);
  push(value);
}

void PickleMachine::extend_marked(PickleKind kind) {
  const size_t mark = find_mark();
  const size_t count = stack_.size() - mark - 1;
  stack_.erase(stack_.begin() + static_cast<ptrdiff_t>(mark));
  budget_.refund(kSlotBytes);
  extend_last(kind, count);
}

void PickleMachine::extend_last(PickleKind kind, size_t count) {
  if (stack_.size() < count + 1) fail("the stack is empty where a value is due");
  if (kind == PickleKind::kDict && count % 2 != 0) fail("a key of a dictionary has no value");
  const size_t first = stack_.size() - count;
  const PickleValue target = stack_[first - 1];
  if (target.kind != kind && target.kind != PickleKind::kOpaque) {
    fail(kind == PickleKind::kDict ? "what takes keys and values is no dictionary"
                                   : "what takes more items is no list");
  }
  for (size_t i = first; i < stack_.size(); ++i) {
    if (stack_[i].kind == PickleKind::kMark) fail("there is a mark where a value is due");
    if (target.kind == kind) append(*target.items, stack_[i]);
  }
  shrink(first);
}

void PickleMachine::drop_marked() { shrink(find_mark()); }

// ---- the memo

void PickleMachine::memoize(uint64_t index) {
  const PickleValue value = top();
  if (memo_.find(index) == memo_.end()) budget_.charge_block(kMemoBytes);
  memo_[index] = value;
}

void PickleMachine::recall(uint64_t index) {
  const auto found = memo_.find(index);
  if (found == memo_.end()) fail(fmt::format("the memo holds nothing at {}", index));
  push(found->second);
}

}  // namespace adjoin::io
