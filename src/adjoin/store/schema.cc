#include "adjoin/store/schema.h"

#include <fmt/format.h>

#include "adjoin/core/error.h"

namespace adjoin::store {
namespace {

constexpr const char* kMark = "adjoin:version";
constexpr int64_t kVersion = 1;

constexpr const char* kTables = R"(
CREATE TABLE studies (
  study_id INTEGER NOT NULL,
  study_name VARCHAR(512) NOT NULL,
  PRIMARY KEY (study_id)
);
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE TABLE version_info (
  version_info_id INTEGER NOT NULL,
  schema_version INTEGER,
  library_version VARCHAR(256),
  PRIMARY KEY (version_info_id),
  CHECK (version_info_id = 1)
);
CREATE TABLE study_directions (
  study_direction_id INTEGER NOT NULL,
  direction VARCHAR(8) NOT NULL,
  study_id INTEGER NOT NULL,
  objective INTEGER NOT NULL,
  PRIMARY KEY (study_direction_id),
  UNIQUE (study_id, objective),
  FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_user_attributes (
  study_user_attribute_id INTEGER NOT NULL,
  study_id INTEGER,
  "key" VARCHAR(512),
  value_json TEXT,
  PRIMARY KEY (study_user_attribute_id),
  UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_system_attributes (
  study_system_attribute_id INTEGER NOT NULL,
  study_id INTEGER,
  "key" VARCHAR(512),
  value_json TEXT,
  PRIMARY KEY (study_system_attribute_id),
  UNIQUE (study_id, "key"),
  FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE trials (
  trial_id INTEGER NOT NULL,
  number INTEGER,
  study_id INTEGER,
  state VARCHAR(8) NOT NULL,
  datetime_start DATETIME,
  datetime_complete DATETIME,
  PRIMARY KEY (trial_id),
  FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE INDEX ix_trials_study_id ON trials (study_id);
CREATE TABLE trial_user_attributes (
  trial_user_attribute_id INTEGER NOT NULL,
  trial_id INTEGER,
  "key" VARCHAR(512),
  value_json TEXT,
  PRIMARY KEY (trial_user_attribute_id),
  UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_system_attributes (
  trial_system_attribute_id INTEGER NOT NULL,
  trial_id INTEGER,
  "key" VARCHAR(512),
  value_json TEXT,
  PRIMARY KEY (trial_system_attribute_id),
  UNIQUE (trial_id, "key"),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_params (
  param_id INTEGER NOT NULL,
  trial_id INTEGER,
  param_name VARCHAR(512),
  param_value FLOAT,
  distribution_json TEXT,
  PRIMARY KEY (param_id),
  UNIQUE (trial_id, param_name),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_values (
  trial_value_id INTEGER NOT NULL,
  trial_id INTEGER NOT NULL,
  objective INTEGER NOT NULL,
  value FLOAT,
  value_type VARCHAR(7) NOT NULL,
  PRIMARY KEY (trial_value_id),
  UNIQUE (trial_id, objective),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
  trial_intermediate_value_id INTEGER NOT NULL,
  trial_id INTEGER NOT NULL,
  step INTEGER NOT NULL,
  intermediate_value FLOAT,
  intermediate_value_type VARCHAR(7) NOT NULL,
  PRIMARY KEY (trial_intermediate_value_id),
  UNIQUE (trial_id, step),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_heartbeats (
  trial_heartbeat_id INTEGER NOT NULL,
  trial_id INTEGER NOT NULL,
  heartbeat DATETIME DEFAULT CURRENT_TIMESTAMP NOT NULL,
  PRIMARY KEY (trial_heartbeat_id),
  UNIQUE (trial_id),
  FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE alembic_version (
  version_num VARCHAR(32) NOT NULL,
  CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO version_info VALUES (1, 12, '4.0.0');
INSERT INTO alembic_version VALUES ('v3.2.0.a');
)";

/// What the store reads and writes; each fails where a table or a column is missing.
constexpr const char* kUsed[] = {
    "SELECT study_id, study_name FROM studies",
    "SELECT study_user_attribute_id, study_id, key, value_json FROM study_user_attributes",
    "SELECT trial_id, number, study_id, state, datetime_start, datetime_complete FROM trials",
    "SELECT trial_user_attribute_id, trial_id, key, value_json FROM trial_user_attributes",
    "SELECT trial_id, param_name, param_value, distribution_json FROM trial_params",
    "SELECT trial_id, objective, value, value_type FROM trial_values",
    R"(SELECT trial_id, step, intermediate_value, intermediate_value_type
       FROM trial_intermediate_values)",
};

}  // namespace

int64_t make_tables(const Database& database, const std::string& name) {
  database.run_script(kTables);
  database.run("INSERT INTO studies (study_name) VALUES (?)", std::string_view(name));
  const int64_t id = database.last_row();
  database.run(
      "INSERT INTO study_directions (direction, study_id, objective) VALUES ('MAXIMIZE', ?, 0)",
      id);
  database.run("INSERT INTO study_system_attributes (study_id, key, value_json) VALUES (?, ?, ?)",
               id, std::string_view(kMark), std::string_view(std::to_string(kVersion)));
  return id;
}

bool has_tables(const Database& database) {
  Statement count = database.query("SELECT count(*) FROM sqlite_master");
  return count.step() && count.whole(0) != 0;
}

int64_t find_study(const Database& database) {
  Statement check = database.query("PRAGMA integrity_check(1)");
  const std::string verdict = check.step() ? check.text(0).value_or("") : "";
  if (verdict != "ok") {
    database.refuse(fmt::format("is damaged ({})", one_line(verdict).substr(0, 200)));
  }
  Statement table =
      database.query("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?",
                     std::string_view("study_system_attributes"));
  const bool is_study = table.step() && table.whole(0) == 1;
  constexpr const char* kNotOurs = "is an SQLite file, but not a study of this program";
  if (!is_study) database.refuse(kNotOurs);
  Statement mark = database.query(
      "SELECT study_id, value_json FROM study_system_attributes WHERE key = ? ORDER BY study_id",
      std::string_view(kMark));
  if (!mark.step()) database.refuse(kNotOurs);
  const auto id = mark.whole(0);
  const std::string version = mark.text(1).value_or("");
  if (version != std::to_string(kVersion)) {
    database.refuse(fmt::format("is a study of version \"{}\"; this program reads version {}",
                                one_line(version).substr(0, 20), kVersion));
  }
  for (const char* sql : kUsed) database.query(sql);
  Statement orphan = database.query("PRAGMA foreign_key_check");
  if (orphan.step()) {
    database.refuse(fmt::format("is damaged: {} speaks of what is not there",
                                one_line(orphan.text(0).value_or("")).substr(0, 50)));
  }
  Statement study =
      database.query("SELECT study_name FROM studies WHERE study_id = ?", id.value_or(-1));
  if (!id || !study.step()) database.refuse("is damaged: its study has no name");
  return *id;
}

}  // namespace adjoin::store
