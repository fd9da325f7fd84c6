#pragma once

// The tables of a study, as Optuna lays them out, and the mark by which a file of ours is known.

#include <cstdint>
#include <string>

#include "adjoin/store/sqlite.h"

namespace adjoin::store {

/// Makes the tables and a study without trials in a database that has no tables, within a
/// transaction of the caller. Its id.
int64_t make_tables(const Database& database, const std::string& name);

bool has_tables(const Database& database);

/// The id of the study in a database that has tables. Error(kData) when it is damaged, or no study
/// of ours.
int64_t find_study(const Database& database);

}  // namespace adjoin::store
