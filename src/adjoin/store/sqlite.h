#pragma once

// SQLite as the store needs it: a file that is open, statements, and changes that are whole or not
// at all. What goes wrong is an Error that names the file.

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "adjoin/core/signals.h"
#include "adjoin/core/stopwatch.h"

namespace adjoin::store {

/// One statement with its values; its rows are read one after the other.
class Statement {
 public:
  /// Goes to the next row; whether there is one.
  bool step();

  // Of the present row, by column from 0; nothing where another type stands.
  std::optional<int64_t> whole(int column) const;
  std::optional<double> real(int column) const;  ///< whole numbers too
  std::optional<std::string> text(int column) const;

 private:
  friend class Database;
  Statement(const class Database& database, const char* sql);

  void bind(int place, int64_t value);
  void bind(int place, double value);
  void bind(int place, std::string_view value);
  void bind(int place, std::nullopt_t);
  template <class Value>
  void bind(int place, const std::optional<Value>& value) {
    value ? bind(place, *value) : bind(place, std::nullopt);
  }

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  const class Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  enum class Mode { kWrite, kRead };

  /// Opens the file, or makes an empty one for kWrite. Error(kData) when it is no SQLite file: it
  /// is left as it is. The longest wait for other programs is `wait_seconds`.
  /// `stop`: as for `heed`.
  Database(const std::string& path, Mode mode, double wait_seconds,
           const StopSignal* stop = nullptr);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  const std::string& path() const { return path_; }
  /// Without links: the same for every name that the file has.
  std::string real_path() const;

  /// A statement and the values of its question marks, in order.
  template <class... Values>
  Statement query(const char* sql, const Values&... values) const {
    Statement statement(*this, sql);
    int place = 0;
    (statement.bind(++place, values), ...);
    return statement;
  }
  template <class... Values>
  void run(const char* sql, const Values&... values) const {
    Statement statement = query(sql, values...);
    while (statement.step()) {
    }
  }
  /// Several statements without values.
  void run_script(const char* sql) const;

  /// Writes go to a log beside the file from now on, so that readers and a writer do not wait for
  /// each other.
  void use_log() const;

  /// Keeps a log that others left as it is when the file is closed, until the file is known to be
  /// ours.
  void leave_log(bool is_left) const;

  int64_t last_row() const { return sqlite3_last_insert_rowid(handle_.get()); }

  /// Error(kData) about the file.
  [[noreturn]] void refuse(const std::string& what) const;
  /// Error(kIo) when there is no longer this file under its name: what is written would be lost.
  void check_place() const;
  /// Waits no longer once there is a signal: Stopped.
  void heed(const StopSignal* stop) { stop_ = stop; }
  /// The Error for a result of SQLite.
  [[noreturn]] void fail(int code) const;

 private:
  friend class Statement;
  friend class Transaction;

  void open(int flags, const std::string& name);
  bool is_stopped() const { return stop_ != nullptr && stop_->received() != 0; }
  static int keep_waiting(void* database, int count);
  /// Whether SQLite can read it at all, as a file that has nobody else.
  void open_to_read();
  void check_header() const;

  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  std::string path_;
  double wait_seconds_;
  const StopSignal* stop_;
  Stopwatch waiting_;
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A change: undone unless `commit` was called.
class Transaction {
 public:
  enum class Kind { kWrite, kRead };

  /// kWrite: waits until nobody else writes; Error(kIo) when the file was moved or deleted. kRead:
  /// what is read belongs together.
  explicit Transaction(const Database& database, Kind kind = Kind::kWrite);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();

  void commit();

 private:
  const Database& database_;
};

}  // namespace adjoin::store
