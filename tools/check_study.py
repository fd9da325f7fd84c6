#!/usr/bin/env python3
"""Open the study of a search by `adjoin search --method bayes` with Optuna, and say what Optuna sees, as JSON.

Fails where a table is not as Optuna itself makes it. Needs Optuna 3 or newer; of 3.0 and 3.1, which lack one index of
newer versions, the check of versions is left out.

  tools/check_study.py RUN/study.db
"""

import argparse
import json
import re
import sqlite3
import sys
import tempfile
from collections import Counter
from pathlib import Path

import optuna

REVISION = "v3.2.0.a"


def columns(path):
    """Of every table its columns with their types."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            table: [(name, kind) for _, name, kind, *_ in database.execute(f'PRAGMA table_info("{table}")')]
            for table in tables
        }


def check_tables(path):
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "own.db"
        optuna.create_study(storage=f"sqlite:///{own}", study_name="own")
        wanted = columns(own)
    found = columns(path)
    for table, parts in wanted.items():
        if found.get(table) != parts:
            sys.exit(f"{path}: table {table} has {found.get(table)}, Optuna's has {parts}")
    more = sorted(set(found) - set(wanted))
    if more:
        sys.exit(f"{path}: has tables that Optuna does not know: {', '.join(more)}")


def main():
    parser = argparse.ArgumentParser(description="What Optuna sees in a study.")
    parser.add_argument("study", help="study.db of a run folder")
    path = Path(parser.parse_args().study).resolve(strict=True)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    check_tables(path)
    version = tuple(int(part) for part in re.findall(r"\d+", optuna.__version__)[:2])
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}", skip_compatibility_check=version < (3, 2))
    if storage.get_current_version() != REVISION:
        sys.exit(f"{path}: is of revision {storage.get_current_version()}, not {REVISION}")
    (summary,) = optuna.get_all_study_summaries(storage)
    study = optuna.load_study(study_name=summary.study_name, storage=storage)
    trials = study.get_trials()
    best = study.best_trial
    seen = {
        "optuna": optuna.__version__,
        "name": study.study_name,
        "direction": study.direction.name,
        "trials": len(trials),
        "states": Counter(trial.state.name for trial in trials),
        "epochs": [len(trial.intermediate_values) for trial in trials],
        "best": {"number": best.number, "value": best.value, "params": best.params, "macs": best.user_attrs["macs"]},
    }
    print(json.dumps(seen, indent=1))


if __name__ == "__main__":
    main()
