#include "adjoin/store/sqlite.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "adjoin/core/error.h"
#include "adjoin/core/place.h"

namespace adjoin::store {
namespace {

constexpr int kMaxValueBytes = 64 << 20;
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr int64_t kHeaderBytes = 100;

/// SQLite takes some names for something else; none of them begins with a dot or a slash.
std::string plain_name(const std::string& path) {
  return path.starts_with('/') ? path : "./" + path;
}

/// The name as a URI of a file that nobody changes.
std::string unchanging_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : plain_name(path)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '/' || c == '.' || c == '_' || c == '-';
    uri += is_plain ? std::string(1, c) : fmt::format("%{:02x}", byte);
  }
  return uri + "?immutable=1";
}

bool has_bytes(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && status.st_size > 0;
}

}  // namespace

Statement::Statement(const Database& database, const char* sql) : database_(&database) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database.handle_.get(), sql, -1, &statement, nullptr);
  statement_.reset(statement);
  if (code != SQLITE_OK) database.fail(code);
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code != SQLITE_ROW && code != SQLITE_DONE) database_->fail(code);
  return code == SQLITE_ROW;
}

void Statement::bind(int place, int64_t value) {
  const int code = sqlite3_bind_int64(statement_.get(), place, value);
  if (code != SQLITE_OK) database_->fail(code);
}

void Statement::bind(int place, double value) {
  const int code = sqlite3_bind_double(statement_.get(), place, value);
  if (code != SQLITE_OK) database_->fail(code);
}

void Statement::bind(int place, std::string_view value) {
  const int code = sqlite3_bind_text64(statement_.get(), place, value.data(), value.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);  // NOLINT
  if (code != SQLITE_OK) database_->fail(code);
}

void Statement::bind(int place, std::nullopt_t) { sqlite3_bind_null(statement_.get(), place); }

std::optional<int64_t> Statement::whole(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_.get(), column);
}

std::optional<double> Statement::real(int column) const {
  const int type = sqlite3_column_type(statement_.get(), column);
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return std::nullopt;
  return sqlite3_column_double(statement_.get(), column);
}

std::optional<std::string> Statement::text(int column) const {
  if (sqlite3_column_type(statement_.get(), column) != SQLITE_TEXT) return std::nullopt;
  const auto* bytes = sqlite3_column_text(statement_.get(), column);
  if (bytes == nullptr) database_->fail(SQLITE_NOMEM);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column));
  return std::string(reinterpret_cast<const char*>(bytes), size);
}

Database::Database(const std::string& path, Mode mode, double wait_seconds, const StopSignal* stop)
    : path_(path), wait_seconds_(wait_seconds), stop_(stop) {
  const Place place = place_at(path);
  if (path.empty()) throw Error(ErrorKind::kIo, "the name of a study's file is empty");
  if (place == Place::kFolder) throw Error(ErrorKind::kIo, path + ": is a folder, not a file");
  if (place == Place::kOther) {
    throw Error(ErrorKind::kIo, path + ": is a device or a pipe, not a regular file");
  }
  if (mode == Mode::kRead) {
    open_to_read();
    return;
  }
  const bool has_log = has_bytes(path + "-wal");
  open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, plain_name(path));
  if (sqlite3_db_readonly(handle_.get(), "main") == 1) {
    throw Error(ErrorKind::kIo, path + ": may only be read; a study that goes on is written to");
  }
  leave_log(has_log);
  check_header();
  run("PRAGMA synchronous = FULL");
}

Database::~Database() = default;

void Database::open(int flags, const std::string& name) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) fail(code);
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_handler(handle, keep_waiting, this);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  // A file from elsewhere must not bring its own statements along.
  for (const int setting : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                            SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
    sqlite3_db_config(handle, setting, 0, nullptr);  // NOLINT(*-vararg)
  }
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);  // NOLINT(*-vararg)
  run("PRAGMA cell_size_check = ON");
}

/// Whether to ask once more for what another program has.
int Database::keep_waiting(void* database, int count) {
  auto& self = *static_cast<Database*>(database);
  if (count == 0) self.waiting_ = {};
  if (self.is_stopped() || self.waiting_.seconds() > self.wait_seconds_) return 0;
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return 1;
}

void Database::open_to_read() {
  open(SQLITE_OPEN_READONLY, plain_name(path_));
  check_header();
  const char* const probe = "SELECT count(*) FROM sqlite_master";
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(handle_.get(), probe, -1, &statement, nullptr);
  if (code == SQLITE_OK) code = sqlite3_step(statement);
  sqlite3_finalize(statement);
  // In a folder that cannot be written, the files beside it cannot be made. Nobody has it open when
  // there is no log, and then they are not needed.
  const bool lacks_files = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
  if (lacks_files && !has_bytes(path_ + "-wal") && !has_bytes(path_ + "-journal")) {
    open(SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, unchanging_uri(path_));
  } else if (lacks_files && has_bytes(path_ + "-journal")) {
    throw Error(ErrorKind::kIo,
                path_ + ": was left in the middle of a change, which its next writer undoes");
  } else if (code != SQLITE_ROW) {
    fail(code);
  }
}

void Database::check_header() const {
  // Through SQLite's own descriptor: closing another one would end its locks.
  sqlite3_file* file = nullptr;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  sqlite3_int64 size = 0;
  int code = file->pMethods->xFileSize(file, &size);
  if (code != SQLITE_OK) fail(code);
  struct stat status {};
  const bool is_one_byte = stat(path_.c_str(), &status) == 0 && status.st_size == 1;
  if (size == 0 && !is_one_byte) return;  // SQLite takes one byte for none
  std::array<char, kHeaderBytes> header{};
  if (size >= kHeaderBytes) {
    code = file->pMethods->xRead(file, header.data(), kHeaderBytes, 0);
    if (code != SQLITE_OK && code != SQLITE_IOERR_SHORT_READ) fail(code);
  }
  const bool is_sqlite = std::string_view(header.data(), kMagic.size()) == kMagic;
  const auto is_known = [](char version) { return version == 1 || version == 2; };
  if (!is_sqlite || !is_known(header[18]) || !is_known(header[19])) {
    refuse("is not a study: it does not begin as an SQLite file does");
  }
}

std::string Database::real_path() const { return sqlite3_db_filename(handle_.get(), "main"); }

void Database::run_script(const char* sql) const {
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) fail(code);
}

void Database::use_log() const {
  const Stopwatch watch;
  // SQLite itself does not wait here.
  for (;;) {
    const int code =
        sqlite3_exec(handle_.get(), "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) break;
    const bool is_waiting = !is_stopped() && watch.seconds() <= wait_seconds_;
    if ((code & 0xff) != SQLITE_BUSY || !is_waiting) fail(code);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

void Database::leave_log(bool is_left) const {
  sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, is_left ? 1 : 0,
                    nullptr);  // NOLINT(*-vararg)
}

void Database::refuse(const std::string& what) const {
  throw Error(ErrorKind::kData, path_ + ": " + what);
}

void Database::check_place() const {
  int has_moved = 0;
  sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
  if (has_moved == 0) return;
  throw Error(ErrorKind::kIo,
              path_ + ": was deleted, moved or replaced while it was in use; nothing more is kept");
}

void Database::fail(int code) const {
  const int number = handle_ ? sqlite3_system_errno(handle_.get()) : 0;
  const std::string reason = number != 0 ? std::strerror(number) : sqlite3_errstr(code);
  const auto throw_io = [&](const std::string& what) {
    throw Error(ErrorKind::kIo, path_ + ": " + what);
  };
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      if (is_stopped()) throw Stopped{stop_->received()};
      throw_io(fmt::format("is locked by another program; waited {:g} s", wait_seconds_));
      break;
    case SQLITE_FULL: throw_io("cannot be written: the disk is full"); break;
    case SQLITE_READONLY:
    case SQLITE_PERM: throw_io("may only be read, or its folder may"); break;
    case SQLITE_CANTOPEN:
      if (number == ENOENT && place_at(path_) == Place::kFile) {
        throw_io("cannot be opened, as files beside it cannot be made");
      }
      throw_io(fmt::format("cannot be opened: {}", reason));
      break;
    case SQLITE_IOERR: throw_io(fmt::format("cannot be read or written: {}", reason)); break;
    case SQLITE_NOMEM: throw std::bad_alloc();
    case SQLITE_NOTADB: refuse("is not a study: it is no SQLite file, or a damaged one");
    case SQLITE_TOOBIG: refuse(fmt::format("has a value of more than {} bytes", kMaxValueBytes));
    case SQLITE_MISUSE: throw Error(ErrorKind::kInternal, path_ + ": SQLite was used wrongly");
    case SQLITE_CORRUPT: refuse("is damaged: SQLite finds its pages malformed");
    default: break;
  }
  refuse(fmt::format("is damaged, or not a study of this program ({})",
                     one_line(sqlite3_errmsg(handle_.get())).substr(0, 200)));
}

Transaction::Transaction(const Database& database, Kind kind) : database_(database) {
  if (kind == Kind::kWrite) database.check_place();
  database.run(kind == Kind::kWrite ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  // After some errors SQLite has undone it already.
  if (sqlite3_get_autocommit(database_.handle_.get()) == 0) {
    sqlite3_exec(database_.handle_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Transaction::commit() { database_.run("COMMIT"); }

}  // namespace adjoin::store
