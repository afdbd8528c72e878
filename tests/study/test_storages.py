"""Studies on disk: the run's log and its mirror, SQLite and journal files as the truth, and Optuna's own reading."""

import errno
import json
import sys
from pathlib import Path

import optuna
import pytest

import eclose as ec
from eclose.runs import Run, RunError, read_events
from eclose.study import journal_file
from eclose.study.errors import Interrupted
from eclose.study.mirrors import FILE, journal_of
from eclose.study.optuna_adapter import OptunaStorage, without_password
from eclose.study.results import Trial, failed
from eclose.study.study import Study
from support.toy_search import Climb, Fixed, Toy, history, toy_study

COUNT = 14


def opened(path: Path):
    """Return a study of a journal file as Optuna itself opens it."""
    backend = optuna.storages.journal.JournalFileBackend(str(path))
    return optuna.load_study(study_name=None, storage=optuna.storages.JournalStorage(backend))


def searched(folder: Path, count=COUNT, create=True, **settings):
    """Search or go on in a run folder; return the study, its run closed."""
    with Run.create(folder, {}) if create else Run.resume(folder) as run:
        study = toy_study(run=run, **settings)
        study.run(count)
    return study


def assert_alike(found, study):
    """Check Optuna's own reading of a study against ours."""
    trials = found.get_trials()
    assert len(trials) == len(study.trials)
    for theirs, ours in zip(trials, study.trials, strict=True):
        assert theirs.user_attrs["term"] == str(ours.term) and theirs.params == {}
        assert theirs.user_attrs["seed"] == ours.seed
        if ours.status == "done":
            assert theirs.state == optuna.trial.TrialState.COMPLETE
            assert theirs.values == [ours.result.objectives[name] for name in study.settings["objectives"]]
        else:
            assert theirs.state == optuna.trial.TrialState.FAIL
            assert theirs.user_attrs["reason"] == ours.result.reason
    assert {trial.state.name for trial in trials} == {"COMPLETE", "FAIL"}


# ---- the log and its mirror


def test_the_mirror_says_what_the_log_says(tmp_path):
    study = searched(tmp_path / "one")
    assert study.history == history(COUNT)
    found = opened(tmp_path / "one" / FILE)
    assert found.study_name == "one" and found.direction.name == "MAXIMIZE" and found.metric_names == ["score"]
    assert_alike(found, study)
    assert found.best_value == study.best.result.objectives["score"]
    assert found.best_trial.number == study.best.number
    done = next(trial for trial in study.trials if trial.status == "done")
    assert found.trials[done.number].intermediate_values == {1: done.result.objectives["score"] / 2}
    finished = [
        event for event in read_events(tmp_path / "one" / "events.jsonl").events if event["event"] == "finished"
    ]
    record = {event["number"]: event["objectives"] for event in finished}
    assert {trial.number: trial.user_attrs["result"]["objectives"] for trial in found.trials} == record


def test_several_objectives_are_optuna_s_values_and_directions(tmp_path):
    study = searched(tmp_path / "one", objectives={"score": "maximise", "size": "minimise"})
    found = opened(tmp_path / "one" / FILE)
    assert [direction.name for direction in found.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert found.metric_names == ["score", "size"]
    assert_alike(found, study)
    assert {trial.number for trial in found.best_trials} == {trial.number for trial in study.front}


def test_a_resumed_study_goes_on_and_so_does_its_mirror(tmp_path):
    searched(tmp_path / "one", 5)
    before = (tmp_path / "one" / FILE).read_bytes()
    study = searched(tmp_path / "one", create=False)
    assert study.history == history(COUNT)
    assert (tmp_path / "one" / FILE).read_bytes().startswith(before)
    assert_alike(opened(tmp_path / "one" / FILE), study)


@pytest.mark.parametrize("damage", ["gone", "torn", "cut", "junk", "lost line", "locked", "ahead"])
def test_a_mirror_in_any_state_is_brought_up_to_the_log(tmp_path, damage):
    searched(tmp_path / "one", 8)
    mirror = tmp_path / "one" / FILE
    content = mirror.read_bytes()
    lines = content.splitlines(keepends=True)
    if damage == "gone":
        mirror.unlink()
    elif damage == "torn":
        mirror.write_bytes(content[:-9])
    elif damage == "cut":
        mirror.write_bytes(b"".join(lines[: len(lines) // 2]))
    elif damage == "junk":
        mirror.write_bytes(b"junk\n" * 9)
    elif damage == "lost line":
        mirror.write_bytes(b"".join(lines[:9] + lines[10:]))
    elif damage == "locked":
        Path(f"{mirror}.lock").symlink_to(mirror)
    else:  # the log has lost what the mirror still has
        log = tmp_path / "one" / "events.jsonl"
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:9]))
    study = searched(tmp_path / "one", create=False)
    assert study.history == history(COUNT)
    assert_alike(opened(mirror), study)
    assert not Path(f"{mirror}.lock").is_symlink()


def test_a_renamed_folder_s_mirror_gets_its_name(tmp_path):
    searched(tmp_path / "one", 5)
    (tmp_path / "one").rename(tmp_path / "two")
    study = searched(tmp_path / "two", create=False)
    found = opened(tmp_path / "two" / FILE)  # one study, or this would raise
    assert found.study_name == "two"
    assert_alike(found, study)


def test_a_mirror_that_fails_is_left_behind_with_a_note(tmp_path, monkeypatch):
    original = journal_file.JournalFile.append_logs

    def full(self, logs):
        if self.path.stat().st_size > 4000:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(self, logs)

    monkeypatch.setattr(journal_file.JournalFile, "append_logs", full)
    with Run.create(tmp_path / "one", {}) as run:
        study = toy_study(run=run)
        with pytest.warns(ec.EcloseWarning, match=r"JournalMirror failed and is left behind.*No space left") as said:
            study.run(COUNT)
        assert len(said) == 1 and len(run.notes) == 1
    assert study.history == history(COUNT)
    monkeypatch.undo()
    assert_alike(opened_after(tmp_path / "one"), study)


def opened_after(folder):
    searched(folder, create=False)  # nothing is left to do but to bring the mirror up
    return opened(folder / FILE)


def test_without_optuna_there_is_no_mirror_and_the_run_says_so_once(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with Run.create(tmp_path / "one", {}) as run:
        with pytest.warns(ec.EcloseWarning, match="optuna is not installed") as said:
            assert journal_of(run) == [] and journal_of(run) == []
        assert len(said) == 1
        study = toy_study(run=run)
        study.run(COUNT)
    assert study.history == history(COUNT) and not (tmp_path / "one" / FILE).exists()
    with pytest.raises(ec.MissingExtra, match="pip install optuna"):
        OptunaStorage.at("sqlite://", "one")


# ---- another storage as the truth


def url_of(kind, folder):
    return f"sqlite:///{folder}/studies.db" if kind == "sqlite" else f"journal://{folder}/studies.log"


@pytest.fixture(params=["sqlite", "journal"])
def url(request, tmp_path):
    return url_of(request.param, tmp_path)


def loaded(url, name):
    """Return a study as Optuna itself opens it."""
    if url.startswith("sqlite"):
        return optuna.load_study(study_name=name, storage=url)
    backend = optuna.storages.journal.JournalFileBackend(url.removeprefix("journal://"))
    return optuna.load_study(study_name=name, storage=optuna.storages.JournalStorage(backend))


def test_a_storage_as_the_truth_gives_the_same_history_and_optuna_opens_it(tmp_path, url):
    study = searched(tmp_path / "one", storage=url)
    assert study.history == history(COUNT)
    assert not (tmp_path / "one" / FILE).exists()
    found = loaded(url, "one")
    assert_alike(found, study)
    assert found.best_value == study.best.result.objectives["score"]


def test_a_study_is_gone_on_with_from_its_storage(tmp_path, url):
    searched(tmp_path / "one", 5, storage=url)
    study = searched(tmp_path / "one", create=False, storage=url)
    assert study.history == history(COUNT)
    assert_alike(loaded(url, "one"), study)
    with Run.resume(tmp_path / "one") as run:  # the log mirrors it, so it suffices as well
        assert toy_study(run=run).history == study.history


def test_a_storage_without_a_run_folder_is_enough(url):
    toy_study(storage=url).run(5)
    study = toy_study(storage=url)
    study.run(COUNT)
    assert study.history == history(COUNT)
    reports = [trial.reports for trial in toy_study(storage=url).trials]
    assert reports == [trial.reports for trial in study.trials] and all(reports)


def test_what_a_kill_leaves_in_a_storage_is_gone_on_from(tmp_path, url):
    """Every call is a moment to be killed at: a storage that stops answering after n calls leaves what a kill does."""

    class Killed(BaseException):
        pass

    undisturbed = history(COUNT)
    for calls in range(1, 40, 5):
        storage = OptunaStorage.at(url, f"study{calls}")
        left = iter(range(calls))

        def dying(call, left=left):
            def counted(*arguments, **named):
                if next(left, None) is None:
                    raise Killed
                return call(*arguments, **named)

            return counted

        for name in ("set_trial_user_attr", "set_trial_state_values", "create_new_trial"):
            setattr(storage._storage, name, dying(getattr(storage._storage, name)))
        with pytest.raises(Killed):
            toy_study(storage=storage).run(COUNT)
        again = toy_study(storage=OptunaStorage.at(url, f"study{calls}"))
        again.run(COUNT)
        assert again.history == undisturbed


def test_two_run_folders_share_a_storage(tmp_path, url):
    with Run.create(tmp_path / "one", {}) as first, Run.create(tmp_path / "two", {}) as second:
        studies = [toy_study(run=first, storage=url), toy_study(run=second, storage=url, seed=6)]
        for count in (4, 9, COUNT):
            for study in studies:
                study.run(count)
    assert studies[0].history == history(COUNT) and studies[1].history == history(COUNT, seed=6)
    assert_alike(loaded(url, "one"), studies[0])
    assert_alike(loaded(url, "two"), studies[1])


def test_a_study_that_another_process_drives_is_refused(tmp_path, url):
    toy_study(storage=url).run(3)
    storage = OptunaStorage.at(url, "eclose")
    study = storage._found()
    parent = {"host": "elsewhere", "process": 1, "born": "1", "since": "2020-01-01", "owner": ""}
    storage._storage.set_study_user_attr(study, "driver", parent)
    with pytest.raises(ec.RequestError, match=r"driven by process 1 on elsewhere .*OptunaStorage\.release") as caught:
        toy_study(storage=url)
    assert "\n" not in str(caught.value)
    OptunaStorage.at(url, "eclose").release()
    assert len(toy_study(storage=url).trials) == 3


def test_of_two_drivers_that_begin_at_once_the_first_to_enter_a_trial_wins(url):
    first, second = (toy_study(storage=OptunaStorage.at(url, "one")) for _ in range(2))
    first.run(3)
    with pytest.raises(RunError, match=r"another process drives the study 'one' .* it entered trial 0 first"):
        second.run(3)
    first.run(COUNT)
    assert first.history == history(COUNT)
    again = toy_study(storage=OptunaStorage.at(url, "one"))
    assert again.history == history(COUNT)


def test_a_renamed_folder_finds_its_study(tmp_path, url):
    searched(tmp_path / "one", 5, storage=url)
    (tmp_path / "one").rename(tmp_path / "two")
    assert searched(tmp_path / "two", create=False, storage=url).history == history(COUNT)
    assert len(loaded(url, "one").trials) == COUNT


def test_a_storage_that_lost_the_study_never_costs_the_log(tmp_path, url):
    searched(tmp_path / "one", storage=url)
    content = (tmp_path / "one" / "events.jsonl").read_bytes()
    (tmp_path / "other").mkdir()
    with Run.resume(tmp_path / "one") as run, pytest.raises(RunError, match="give the storage that the run began with"):
        toy_study(run=run, storage=url_of(url.partition(":")[0], tmp_path / "other"))
    assert (tmp_path / "one" / "events.jsonl").read_bytes().startswith(content)
    assert searched(tmp_path / "one", create=False, storage=url).history == history(COUNT)


def test_a_study_of_somebody_else_is_left_alone(url):
    storage = OptunaStorage.at(url, "theirs")._storage
    optuna.create_study(storage=storage, study_name="theirs").optimize(lambda trial: trial.suggest_float("x", 0, 1), 2)
    with pytest.raises(ec.RequestError, match="'theirs' that eclose did not begin"):
        Study(ec.space("nasbench201"), Toy(), Fixed([]), storage=OptunaStorage.at(url, "theirs"))
    assert len(loaded(url, "theirs").trials) == 2


def test_trials_of_other_tools_in_our_study_are_passed_over(url):
    toy_study(storage=url).run(5)
    storage = OptunaStorage.at(url, "eclose")._storage
    optuna.load_study(study_name="eclose", storage=storage).enqueue_trial({"x": 1})
    study = toy_study(storage=url)
    study.run(COUNT)
    assert study.history == history(COUNT)
    assert len(loaded(url, "eclose").trials) == COUNT + 1


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("studies.db", ec.RequestError, "a storage is a URL such as"),
        ("nosuch://x", ec.RequestError, "the storage nosuch://x cannot be opened"),
        ("sqlite:////nowhere/at/all.db", ec.RequestError, "unable to open database file"),
        ("journal:///nowhere/at/all.log", RunError, "all.log failed .*No such file"),
        ("postgresql://me:secret@localhost:1/x", ec.EcloseError, r"postgresql://\*\*\*@localhost"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_said_in_one_line(url, error, message):
    with pytest.raises(error, match=message) as caught:
        OptunaStorage.at(url, "one")
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)


def test_passwords_are_not_shown():
    assert without_password("mysql://a:b@host/x") == "mysql://***@host/x"
    assert without_password("sqlite:///x.db") == "sqlite:///x.db"


# ---- settings, interruptions


def test_a_study_is_not_gone_on_with_under_other_settings(tmp_path):
    searched(tmp_path / "one", 5)
    for settings, said in (({"seed": 6}, "seed was 5, is 6"), ({"lag": 1}, "lag was 3, is 1")):
        with Run.resume(tmp_path / "one") as run, pytest.raises(ec.RequestError, match=said):
            toy_study(run=run, **settings)


def test_the_lag_of_the_first_session_stays(tmp_path):
    searched(tmp_path / "one", 5, lag=None)
    with Run.resume(tmp_path / "one") as run:
        assert toy_study(run=run, lag=None, workers=4).settings["lag"] == 3


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_a_run_that_can_be_resumed(tmp_path, workers):
    def pressed(progress):
        if progress.happened == "finished" and progress.done + progress.failed == 6:
            raise KeyboardInterrupt

    with Run.create(tmp_path / "one", {}) as run:
        study = toy_study(run=run, workers=workers)
        with pytest.raises(Interrupted, match=r"interrupted after \d+ trials; continue with `eclose resume .*one`"):
            study.run(COUNT, pressed)
    assert searched(tmp_path / "one", create=False, workers=workers).history == history(COUNT)


def test_a_full_disk_ends_the_study_and_nothing_recorded_is_lost(tmp_path, monkeypatch):
    from eclose.runs import events

    original = events.write_all

    def full(descriptor, line):
        if json.loads(line).get("number") == 7:
            raise OSError(errno.ENOSPC, "No space left on device")
        original(descriptor, line)

    monkeypatch.setattr(events, "write_all", full)
    with Run.create(tmp_path / "one", {}) as run, pytest.raises(RunError, match="the disk is full"):
        toy_study(run=run).run(COUNT)
    monkeypatch.undo()
    assert searched(tmp_path / "one", create=False).history == history(COUNT)


def test_a_log_that_makes_no_sense_is_said(tmp_path):
    searched(tmp_path / "one", 5)
    log = tmp_path / "one" / "events.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    missing = next(n for n, line in enumerate(lines) if b'"proposed","number":2' in line)
    log.write_bytes(b"".join(lines[:missing] + lines[missing + 1 :]))
    with Run.resume(tmp_path / "one") as run, pytest.raises(RunError, match=r"events\.jsonl does not make sense"):
        toy_study(run=run)


def test_the_best_term_is_on_disk_and_checkpoints_of_trials_that_are_over_are_not(tmp_path):
    class Kept(Toy):
        def __call__(self, term, seed, report=None):
            (report.folder / "checkpoint.pt").write_bytes(b"state")
            return super().__call__(term, seed, report)

    study = searched(tmp_path / "one", evaluate=Kept())
    assert (tmp_path / "one" / "best.term").read_text().strip() == str(study.best.term)
    assert len(list((tmp_path / "one" / "trials").iterdir())) == COUNT
    assert not list((tmp_path / "one").rglob("checkpoint.pt"))
    broken = next(trial for trial in study.trials if trial.status == "failed")
    text = (tmp_path / "one" / "trials" / f"{broken.number:05d}" / "error.txt").read_text()
    assert "Traceback" in text and "second line" in text
    assert broken.result.reason.startswith("ValueError: cannot build") and "second line" not in broken.result.reason


def test_a_trial_s_reason_reaches_optuna(tmp_path):
    storage = OptunaStorage.journal(tmp_path / "x.log", "one")
    storage.begin({"objectives": {"score": "maximise"}, "seed": 0})
    trial = Trial(0, ec.parse("conv"), 1)
    storage.propose(trial)
    trial.result = failed("out of memory")
    storage.finish(trial)
    assert opened(tmp_path / "x.log").trials[0].user_attrs["reason"] == "out of memory"


def test_a_space_that_is_used_up_ends_in_repetitions():
    grammar = ec.Grammar.parse("Net -> conv(kernel={1,3,5})")
    study = Study(grammar, Toy(), Climb(grammar), seed=1, duplicates="reject")
    study.run(8)
    assert len({trial.term for trial in study.trials if trial.source is None}) == 3
    assert all(trial.result == study.trials[trial.source].result for trial in study.trials if trial.source is not None)
