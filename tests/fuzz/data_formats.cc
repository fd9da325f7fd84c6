#include "fuzz/data_formats.h"

#include <cstring>

#include "adjoin/data/cifar.h"
#include "adjoin/data/idx.h"
#include "adjoin/data/tar.h"
#include "adjoin/data/tar_entry.h"
#include "data/make_idx.h"
#include "data/make_tar.h"

namespace adjoin::fuzz {
namespace {

using data::TarMember;

io::StoredTensor bytes_tensor(const void* bytes, size_t size) {
  return {io::Dtype::kU8, {static_cast<int64_t>(size)}, {1}, static_cast<const std::byte*>(bytes)};
}

/// Bytes that a reader gave, kept alive by the file.
io::TensorFile as_tensor_file(std::vector<uint8_t> bytes) {
  auto owner = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
  io::TensorFile file;
  file.tensors.emplace("bytes", bytes_tensor(owner->data(), owner->size()));
  file.file = {"file", owner, {}};
  return file;
}

std::string tar_of(const std::vector<TarMember>& members) {
  std::string entries;
  for (const TarMember& member : members) entries += data::make_tar_entry(member);
  return entries;
}

}  // namespace

std::vector<std::string> idx_cores() {
  return {data::make_idx({3, 2, 4}, data::counting(24)), data::make_idx({1, 1, 1}, "x"),
          data::make_idx({20, 50, 50}, data::counting(50'000))};
}

/// Packed or plain, in turns with the length.
std::string wrap_idx(const std::string& core) {
  return core.size() % 2 == 0 ? core : data::gzip(core);
}

std::vector<std::string> idx_tokens() {
  return {data::big_endian(0x803),   data::big_endian(0x801), data::big_endian(0xffffffff),
          data::big_endian(0x10000), data::big_endian(0),     "\x1f\x8b\x08"};
}

io::TensorFile read_idx_file(io::FileBytes file) {
  return as_tensor_file(data::read_idx(file, 3).bytes);
}

std::vector<std::string> cifar_cores() {
  return {std::string("\0", 1) + data::counting(3072), "\x09" + data::counting(3072, 7),
          std::string(8 * 3073, '\3')};
}

/// Cut to whole records, which a broken core seldom is.
std::string wrap_cifar(const std::string& core) {
  return core.size() % 4 == 0 || core.size() < 3073 ? core
                                                    : core.substr(0, core.size() / 3073 * 3073);
}

std::vector<std::string> cifar_tokens() {
  return {"\x0a", "\xff", std::string(3073, '\1'), std::string(3072, '\2')};
}

io::TensorFile read_cifar_file(io::FileBytes file) {
  data::Pixels pixels;
  std::vector<int64_t> labels;
  data::read_cifar(file, pixels, labels);
  return as_tensor_file(std::move(pixels.bytes));
}

std::vector<std::string> tar_cores() {
  const std::string path = "class/" + std::string(200, 'n') + ".jpg";
  TarMember split = {"1.png", std::string(700, 'p')};
  split.prefix = "some/folder";
  std::vector<TarMember> many;
  for (int i = 0; i < 200; ++i) many.push_back({"c" + std::to_string(i % 9) + "/x.jpg", "data"});
  return {tar_of({{"a/", "", '5'}, {"a/1.jpg", "one"}, {"b/2.JPEG", ""}, {"b/notes.txt", "x"}}),
          tar_of({{"@LongLink", path + '\0', 'L'}, {"short", "x"}, split}),
          tar_of({{"g", data::pax_record("comment", "all"), 'g'},
                  {"x", data::pax_record("path", path) + data::pax_record("size", "3"), 'x'},
                  {"short", "abc"}}),
          tar_of(many)};
}

std::string wrap_tar(const std::string& core) {
  std::string file = core + data::tar_end();
  repair_tar(file);
  return file;
}

std::vector<std::string> tar_tokens() {
  return {std::string(512, '\0'),
          data::make_tar_entry({"d/4.jpg", "x"}),
          data::make_tar_entry({"x", data::pax_record("size", "18446744073709551615"), 'x'}),
          data::make_tar_entry({"x", data::pax_record("GNU.sparse.size", "1"), 'x'}),
          data::make_tar_entry({"x", "long/name.jpg", 'L'}),
          data::make_tar_entry({"s/1.jpg", "x", 'S'}),
          data::make_tar_entry({"l/1.jpg", "", '2'}),
          data::pax_record("path", "e/5.png"),
          data::pax_record("size", "1"),
          "77777777777",
          "../",
          "/",
          ".jpg",
          "ustar",
          std::string("\x80\0\0\0", 4),
          "\xff"};
}

/// Gives every block that looks like a header its true checksum.
void repair_tar(std::string& file) {
  for (size_t at = 0; at + 512 <= file.size(); at += 512) {
    if (file.compare(at + 257, 5, "ustar") != 0) continue;
    file.replace(at + 148, 8, "        ");
    uint32_t sum = 0;
    for (size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(file[i]);
    file.replace(at + 148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  }
}

io::TensorFile read_tar_file(io::FileBytes file) {
  const data::TarIndex index = data::index_tars({file});
  io::TensorFile result;
  for (size_t i = 0; i < index.images.size(); ++i) {
    const auto entry = data::read_tar_entry(index.shards[0], index.images[i].at);
    result.tensors.emplace(std::to_string(i), bytes_tensor(entry->data.data(), entry->data.size()));
  }
  result.file = std::move(file);
  return result;
}

}  // namespace adjoin::fuzz
