// The globals a state_dict is made of, those that no checkpoint calls, and what a call gives.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "adjoin/core/error.h"
#include "adjoin/core/text.h"
#include "adjoin/io/pickle.h"

namespace adjoin::io {
namespace {

using Kind = PickleKind;

struct KnownFunction {
  std::string_view module;
  std::string_view name;
  PickleFunction function;
};

constexpr KnownFunction kFunctions[] = {
    {"collections", "OrderedDict", PickleFunction::kOrderedDict},
    {"torch._utils", "_rebuild_tensor", PickleFunction::kRebuildTensor},
    {"torch._utils", "_rebuild_tensor_v2", PickleFunction::kRebuildTensor},
    {"torch._utils", "_rebuild_parameter", PickleFunction::kRebuildParameter},
    {"torch._utils", "_rebuild_parameter_with_state", PickleFunction::kRebuildParameter},
    {"torch", "Size", PickleFunction::kSize},
};

struct StorageType {
  std::string_view name;
  Dtype dtype;
};

constexpr std::string_view kStorageModules[] = {"torch", "torch.storage", "torch.cuda"};
constexpr StorageType kStorageTypes[] = {
    {"FloatStorage", Dtype::kF32},     {"DoubleStorage", Dtype::kF64}, {"HalfStorage", Dtype::kF16},
    {"BFloat16Storage", Dtype::kBF16}, {"LongStorage", Dtype::kI64},   {"IntStorage", Dtype::kI32},
    {"ShortStorage", Dtype::kI16},     {"CharStorage", Dtype::kI8},    {"ByteStorage", Dtype::kU8},
    {"BoolStorage", Dtype::kBool},
};

// With everything below them. Nothing of a pickle is ever run here, but a file that calls one of
// these was made to attack whoever loads it in Python, and its weights deserve no trust.
constexpr std::string_view kForbiddenModules[] = {
    "os",     "posix",     "nt",    "subprocess", "sys",        "shutil",
    "socket", "importlib", "runpy", "ctypes",     "webbrowser", "asyncio",
    "pip",    "pty",       "http",  "urllib",     "requests",   "multiprocessing",
};
// Of modules whose names people also give to packages of their own.
constexpr std::string_view kForbiddenNames[] = {"code.interact", "code.InteractiveConsole",
                                                "code.InteractiveInterpreter", "commands.getoutput",
                                                "commands.getstatusoutput"};
constexpr std::string_view kForbiddenBuiltins[] = {
    "eval", "exec", "compile", "open", "__import__", "execfile", "input", "breakpoint"};

template <class Range, class T>
bool holds(const Range& range, const T& value) {
  return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

bool is_forbidden(std::string_view module, std::string_view name) {
  if (module == "builtins" || module == "__builtin__") return holds(kForbiddenBuiltins, name);
  return holds(kForbiddenModules, module.substr(0, module.find('.'))) ||
         holds(kForbiddenNames, fmt::format("{}.{}", module, name));
}

bool is_sequence(const PickleValue& value) {
  return value.kind == Kind::kList || value.kind == Kind::kTuple;
}

constexpr size_t kStorageIdSize = 5;  // "storage", type, key, location, count
constexpr size_t kLongestKey = 256;
constexpr size_t kLongestGlobal = 1024;

}  // namespace

PickledStorage storage_of(const PickleValue& value) {
  const auto& id = value.items->values;
  return {static_cast<Dtype>(id[1].integer), id[2].string(), id[4].integer};
}

void PickleMachine::push_global(std::string_view module, std::string_view name) {
  // Two bytes recall a string however long it is: looking at it each time could take for ever.
  if (module.size() > kLongestGlobal || name.size() > kLongestGlobal) {
    fail(fmt::format("a global has a name of more than {} bytes", kLongestGlobal));
  }
  for (const KnownFunction& known : kFunctions) {
    if (known.module == module && known.name == name) {
      return push(PickleValue(Kind::kFunction, static_cast<int64_t>(known.function)));
    }
  }
  for (const StorageType& type : kStorageTypes) {
    if (type.name == name && holds(kStorageModules, module)) {
      return push(PickleValue(Kind::kStorageType, static_cast<int64_t>(type.dtype)));
    }
  }
  if (!is_forbidden(module, name)) return push_kind(Kind::kOpaque);
  push_string(module);
  push_string(name);
  make_tuple(2);
  stack_.back().kind = Kind::kForbidden;
}

void PickleMachine::push_stack_global() {
  const PickleValue name = pop();
  const PickleValue module = pop();
  if (name.kind != Kind::kString || module.kind != Kind::kString) {
    fail("the name of a global is no string");
  }
  push_global(module.string(), name.string());
}

void PickleMachine::reduce() {
  const PickleValue arguments = pop();
  const PickleValue callable = pop();
  push(call(callable, arguments));
}

void PickleMachine::reduce_with_keywords() {
  pop();
  reduce();
}

void PickleMachine::make_object() {
  const size_t mark = find_mark();
  if (mark + 1 == stack_.size()) fail("an object has no class");
  const PickleValue type = stack_[mark + 1];
  make_marked(Kind::kTuple);
  PickleValue arguments = pop();
  arguments.items->values.erase(arguments.items->values.begin());
  push(call(type, arguments));
}

void PickleMachine::make_instance() {
  const std::string_view module = take_line();
  const std::string_view name = take_line();
  make_marked(Kind::kTuple);
  push_global(module, name);
  const PickleValue type = pop();
  const PickleValue arguments = pop();
  push(call(type, arguments));
}

PickleValue PickleMachine::call(const PickleValue& callable, const PickleValue& arguments) {
  if (callable.kind == Kind::kForbidden) {
    const auto& names = callable.items->values;
    const std::string what =
        fmt::format("{}.{}", names[0].string().substr(0, 60), names[1].string().substr(0, 60));
    throw Error(ErrorKind::kData,
                fmt::format("{}: its pickle calls {}, which no checkpoint needs; nothing was run",
                            origin_, one_line(what)));
  }
  if (callable.kind == Kind::kOpaque || callable.kind == Kind::kStorageType) {
    return PickleValue(Kind::kOpaque);
  }
  if (callable.kind != Kind::kFunction) fail("what is called is no function");
  if (arguments.kind != Kind::kTuple) fail("the arguments of a call are no tuple");
  const auto& values = arguments.items->values;
  switch (static_cast<PickleFunction>(callable.integer)) {
    case PickleFunction::kOrderedDict: return ordered_dict(*arguments.items);
    case PickleFunction::kRebuildTensor: {
      if (values.size() < 4) fail("a tensor lacks its storage, offset, size or stride");
      if (values[0].kind == Kind::kOpaque) return PickleValue(Kind::kOpaque);
      if (values[0].kind != Kind::kStorage) fail("the storage of a tensor is none");
      PickleValue tensor = arguments;
      tensor.kind = Kind::kTensor;
      return tensor;
    }
    case PickleFunction::kRebuildParameter:
      if (values.empty()) fail("a parameter lacks its tensor");
      return values[0].kind == Kind::kTensor ? values[0] : PickleValue(Kind::kOpaque);
    case PickleFunction::kSize:
      if (values.size() == 1 && values[0].kind == Kind::kTuple) return values[0];
      return PickleValue(Kind::kOpaque);
  }
  return PickleValue(Kind::kOpaque);
}

/// From nothing or from a list of pairs, as Python 2 wrote it.
PickleValue PickleMachine::ordered_dict(const PickleItems& arguments) {
  const PickleValue dict(Kind::kDict, new_items(0));
  if (arguments.values.empty()) return dict;
  if (arguments.values.size() != 1 || !is_sequence(arguments.values[0])) {
    fail("an OrderedDict is made of something else than a list of pairs");
  }
  for (const PickleValue& pair : arguments.values[0].items->values) {
    if (!is_sequence(pair) || pair.items->values.size() != 2) {
      fail("an OrderedDict is made of something else than a list of pairs");
    }
    append(*dict.items, pair.items->values[0]);
    append(*dict.items, pair.items->values[1]);
  }
  return dict;
}

void PickleMachine::load_persistent() {
  PickleValue id = pop();
  if (id.kind != Kind::kTuple || id.items->values.empty()) fail("a persistent id is no tuple");
  const auto& values = id.items->values;
  const bool is_storage = values[0].is_string("storage");
  if (!is_storage || values.size() < 2 || values[1].kind != Kind::kStorageType) {
    return push_kind(Kind::kOpaque);
  }
  check_storage(*id.items);
  id.kind = Kind::kStorage;
  budget_.charge(sizeof(PickleValue) + 2);
  storages_.push_back(id);
  push(id);
}

void PickleMachine::check_storage(const PickleItems& id) const {
  const auto& values = id.values;
  if (values.size() < kStorageIdSize || values.size() > kStorageIdSize + 1) {
    fail(fmt::format("the id of a storage has {} parts; 5 or 6 are due", values.size()));
  }
  if (values[2].kind != Kind::kString || values[2].length > kLongestKey) {
    fail("the key of a storage is no short string");
  }
  if (values[4].kind != Kind::kInt || values[4].integer < 0) {
    fail("the size of a storage is no count");
  }
  if (values.size() > kStorageIdSize && values[kStorageIdSize].kind != Kind::kNone) {
    fail(fmt::format("storage {} is a view of another; clone the tensors and save again",
                     in_quotes(values[2].string())));
  }
}

}  // namespace adjoin::io
