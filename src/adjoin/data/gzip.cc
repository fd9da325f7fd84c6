#include "adjoin/data/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <new>

#include "adjoin/core/error.h"

namespace adjoin::data {

bool looks_like_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

GzipReader::GzipReader(const io::FileBytes& file)
    : file_(file), stream_(std::make_unique<z_stream>()) {
  constexpr int kGzipOnly = 16;
  if (inflateInit2(stream_.get(), MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
}

GzipReader::~GzipReader() { inflateEnd(stream_.get()); }

void GzipReader::fail(const std::string& what) const {
  throw Error(ErrorKind::kData, file_.origin + ": " + what);
}

size_t GzipReader::unpack(std::span<uint8_t> out) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;  // zlib counts in 32 bits
  size_t done = 0;
  while (done < out.size() && !is_ended_) {
    if (stream_->avail_in == 0 && consumed_ < file_.bytes.size()) {
      const auto rest = file_.bytes.subspan(consumed_);
      const size_t size = std::min(rest.size(), kMostAtOnce);
      stream_->next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest.data()));
      stream_->avail_in = static_cast<uInt>(size);
      consumed_ += size;
    }
    const size_t wanted = std::min(out.size() - done, kMostAtOnce);
    stream_->next_out = out.data() + done;
    stream_->avail_out = static_cast<uInt>(wanted);
    const int code = inflate(stream_.get(), Z_NO_FLUSH);
    done += wanted - stream_->avail_out;
    is_ended_ = code == Z_STREAM_END;
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (code == Z_BUF_ERROR) fail("is a gzip that is cut short");
    if (code != Z_OK && !is_ended_) {
      fail(fmt::format("is a broken gzip: {}", stream_->msg != nullptr ? stream_->msg : "no data"));
    }
  }
  return done;
}

std::vector<uint8_t> GzipReader::read(uint64_t size) {
  constexpr uint64_t kFirstPiece = uint64_t{1} << 16;
  std::vector<uint8_t> bytes;
  while (bytes.size() < size) {
    const size_t have = bytes.size();
    // Doubled, so that a size that is a lie costs no more than what the file really unpacks to.
    bytes.resize(std::min(size, std::max<uint64_t>(kFirstPiece, 2 * have)));
    const size_t count = unpack(std::span(bytes).subspan(have));
    if (have + count < bytes.size()) {
      fail(fmt::format("unpacks to fewer bytes than its header says: {} more were due",
                       size - have - count));
    }
  }
  return bytes;
}

void GzipReader::expect_end() {
  uint8_t extra = 0;
  if (unpack({&extra, 1}) > 0) fail("unpacks to more bytes than its header says");
  const size_t unread = file_.bytes.size() - consumed_ + stream_->avail_in;
  if (unread > 0) fail(fmt::format("{} bytes follow the end of the gzip", unread));
}

}  // namespace adjoin::data
