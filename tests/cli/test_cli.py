"""What people type and see: output, errors, exit codes, files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import unfooled
from reviews import sentences, write_csv
from unfooled.report.advice import held_out
from unfooled.runs.attack import Run, attack
from unfooled.victims.fake import FakeVictim


def test_help_names_every_command_and_the_exit_codes() -> None:
    text = unfooled("--help").stdout
    for name in ("attack", "attacks", "show", "resources", "export", "summary", "demo"):
        assert name in text
    assert "130 interrupted" in " ".join(text.split())


@pytest.mark.parametrize("command", ["attack", "show", "resources", "export", "summary"])
def test_help_of_commands_has_examples(command: str) -> None:
    text = unfooled(command, "--help").stdout
    assert "Example" in text
    assert f"unfooled {command}" in text


def unread(*arguments: str, cwd: Path, errors_too: bool = False, at_once: bool = False) -> tuple[int, str]:
    """Exit code and errors of a command whose output nobody reads: `head` that has seen enough."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "unfooled", *arguments],
            stdout=writer,
            stderr=writer if errors_too else subprocess.PIPE,
            cwd=cwd,
            env=os.environ | {"PYTHONUNBUFFERED": "1" if at_once else ""},
            timeout=120,
        )
    finally:
        os.close(writer)
    return done.returncode, (done.stderr or b"").decode()


@pytest.mark.parametrize(
    "command",
    ["--help", "attack --help", "attacks", "attacks --json", "show textfooler", "train --list",
     "harden --list", "resources --json", "summary run", "summary run --json", "--version"],
)  # fmt: skip
def test_output_that_nobody_reads_ends_a_command_quietly(command: str, tmp_path: Path) -> None:
    if "run" in command:
        attack(FakeVictim(), sentences(4), "deepwordbug", out=tmp_path / "run")
    assert unread(*command.split(), cwd=tmp_path) == (141, "")
    assert unread(*command.split(), cwd=tmp_path, errors_too=True, at_once=True) == (141, "")


def test_an_attack_that_nobody_reads_is_still_written_down(tmp_path: Path) -> None:
    write_csv(tmp_path / "d.csv", sentences(6))
    arguments = ["attack", "-m", "fake", "-d", "d.csv", "-a", "deepwordbug", "-o", "x", "--json"]
    assert unread(*arguments, cwd=tmp_path) == (141, "")
    assert Run(tmp_path / "x").summary().total == 6


def test_a_mistake_that_nobody_reads_ends_quietly_too(tmp_path: Path) -> None:
    assert unread("show", "nothing", cwd=tmp_path, errors_too=True) == (141, "")


def test_version() -> None:
    assert unfooled("--version").stdout.startswith("unfooled 0.")


def test_attack_prints_checks_a_table_and_word_diffs(tmp_path: Path) -> None:
    write_csv(tmp_path / "d.csv", sentences(20))
    arguments = ["attack", "--model", "fake", "--data", "d.csv", "--attack", "deepwordbug", "--out", "runs/x"]
    done = unfooled(*arguments, cwd=tmp_path)
    assert "accuracy under attack" in done.stdout
    assert "95 % interval" in done.stdout
    assert "positive → negative" in done.stdout or "negative → positive" in done.stdout
    assert "deterministic" in done.stderr
    assert (tmp_path / "runs/x/run.sqlite").is_file()
    again = unfooled("summary", "runs/x", cwd=tmp_path)
    assert again.stdout == done.stdout


def test_json_is_all_that_is_printed(tmp_path: Path) -> None:
    write_csv(tmp_path / "d.csv", sentences(10))
    done = unfooled("attack", "-m", "fake", "-d", "d.csv", "-a", "deepwordbug", "--json", cwd=tmp_path)
    summary = json.loads(done.stdout)
    assert summary["total"] == 10
    assert summary["success_rate"]["n"] == summary["attacked"]
    assert done.stderr == ""
    assert (tmp_path / summary["run"] / "run.sqlite").is_file()


def test_a_smaller_limit_says_that_the_run_holds_more(tmp_path: Path) -> None:
    write_csv(tmp_path / "d.csv", sentences(10))
    arguments = ["attack", "-m", "fake", "-d", "d.csv", "-a", "deepwordbug", "-o", "run"]
    unfooled(*arguments, cwd=tmp_path)
    assert "holds 10 examples, 4 were asked for" in unfooled(*arguments, "--limit", "4", cwd=tmp_path).stderr


def test_errors_in_some_examples_have_their_own_exit_code(tmp_path: Path) -> None:
    write_csv(tmp_path / "d.csv", [*sentences(5), ("", "positive")])
    done = unfooled("attack", "-m", "fake", "-d", "d.csv", "-a", "deepwordbug", code=3, cwd=tmp_path)
    assert "1 ended in an error" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        (["--model", "fake", "--data", "nothing.csv"], ["nothing.csv"]),
        (["--model", "nothing.skops", "--data", "d.csv"], ["nothing.skops"]),
        (["--model", "fake", "--data", "d.csv", "--attack", "textfoler"], ["did you mean textfooler"]),
        (["--model", "fake", "--data", "d.csv", "--text-column", "body"], ["body", "text", "label"]),
        (["--model", "fake", "--data", "empty.csv"], ["empty.csv"]),
        (["--model", "fake", "--data", "d.csv", "--set", "search.most"], ["name=value"]),
        (["--model", "fake", "--data", "d.csv", "--victim-option", "colour=red"], ["colour"]),
        (["--model", "fake", "--data", "d.csv", "--attack", "deepwordbug", "--encoder", "x"], ["no part"]),
        (["--model", "fake", "--data", "other.csv"], ["ham", "spam", "negative", "positive", "--label-map"]),
    ],
    ids=lambda value: " ".join(value)[-40:],
)
def test_mistakes_are_answered_in_a_line_without_a_traceback(
    tmp_path: Path, arguments: list[str], messages: list[str]
) -> None:
    write_csv(tmp_path / "d.csv", sentences(5))
    write_csv(tmp_path / "other.csv", [("a good film", "ham"), ("a bad film", "spam")])
    (tmp_path / "empty.csv").write_text("")
    if "--attack" not in arguments:
        arguments = [*arguments, "--attack", "deepwordbug"]
    done = unfooled("attack", *arguments, code=2, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    for message in messages:
        assert message in done.stderr


def test_a_missing_resource_names_the_command_that_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    write_csv(tmp_path / "d.csv", sentences(5))
    done = unfooled("attack", "-m", "fake", "-d", "d.csv", "-a", "textfooler", code=2, cwd=tmp_path)
    assert "unfooled resources get counter-fitted minilm perceptron-tagger" in done.stderr
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("more", [(), ("--masked-lm", "trigram+masked-lm")], ids=["default", "joined"])
def test_a_missing_masked_language_model_offers_all_choices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path / "cache"))
    write_csv(tmp_path / "d.csv", sentences(5))
    done = unfooled("attack", "-m", "fake", "-d", "d.csv", "-a", "bae-r", *more, code=2, cwd=tmp_path)
    get = next(line for line in done.stderr.splitlines() if "run: unfooled resources get" in line)
    assert "minilm" in get
    assert "masked-lm" not in get
    assert "unfooled resources get trigram, then --masked-lm trigram" in done.stderr
    assert "unfooled resources build masked-lm --minutes 20" in done.stderr
    assert "--masked-lm bert-base-uncased" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_attacks_are_listed_by_what_they_need_and_edit() -> None:
    lines = unfooled("attacks").stdout.splitlines()
    (line,) = [line for line in lines if line.split()[:1] == ["textfooler"]]  # one, whatever its versions
    assert "@textattack @paper @code @adjusted @valid" in line
    above = lines[: lines.index(line)]
    assert [each for each in above if each.startswith("  ") and not each.startswith("    ")][-1] == "  words"
    assert [each for each in above if each and not each.startswith(" ")][-1].startswith("Probabilities")
    listed = json.loads(unfooled("attacks", "--json").stdout)
    assert {"name", "summary", "paper", "needs", "levels", "asks"} <= set(listed[0])


def test_attacks_are_found_by_need_level_and_words() -> None:
    from unfooled.core.attack_list import list_attacks

    def names(**wanted: str) -> set[str]:
        return {attack.name for attack in list_attacks(**wanted)}

    assert {"leetspeak", "viper", "smuggle-bidi"} <= names(need="decisions", level="characters")
    assert "textfooler" not in names(level="characters")
    assert names(search="JIN ET AL") == {"textfooler"}
    assert {"asmin-gr", "asmax-ec"} <= names(need="attention") <= names(need="gradients")
    assert names(need="translations") >= {"typo", "bleu-drop"}
    assert names(level="characters") | names(level="words") | names(level="sentences") == names()
    done = unfooled("attacks", "--level", "q", code=2)
    assert "characters, words, sentences" in done.stderr
    assert unfooled("attacks", "--search", "no such thing").stdout.startswith("no attack is like that")


def test_show_tells_algorithm_differences_and_settings() -> None:
    text = unfooled("show", "textfooler@paper").stdout
    for part in (
        "arXiv:1907.11932",
        "Differences from the authors' code",
        "search.candidates.min_cosine = 0.7",
    ):
        assert part in text
    assert json.loads(unfooled("show", "deepwordbug", "--json").stdout)["settings"]["part"]


def test_resources_are_listed_with_licence_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNFOOLED_CACHE", str(tmp_path))
    rows = json.loads(unfooled("resources", "--json").stdout)
    assert {"minilm", "counter-fitted", "perceptron-tagger", "movie-reviews"} <= {row["name"] for row in rows}
    assert all(row["licence"] and row["bytes"] > 0 and not row["present"] for row in rows)
    assert "unfooled resources get" in unfooled("resources").stdout
    assert "cannot 'fetch'" in unfooled("resources", "fetch", code=2).stderr


@pytest.mark.parametrize("name", ["results.csv", "results.jsonl", "results.parquet"])
def test_export_writes_what_it_says(tmp_path: Path, name: str) -> None:
    write_csv(tmp_path / "d.csv", sentences(8))
    unfooled("attack", "-m", "fake", "-d", "d.csv", "-a", "deepwordbug", "-o", "run", cwd=tmp_path)
    assert "8 rows" in unfooled("export", "run", "-o", name, cwd=tmp_path).stdout
    assert (tmp_path / name).stat().st_size > 100
    assert "--force" in unfooled("export", "run", "-o", name, code=2, cwd=tmp_path).stderr
    unfooled("export", "run", "-o", name, "--force", cwd=tmp_path)


def test_hostile_texts_cannot_reach_the_terminal(tmp_path: Path) -> None:
    write_csv(tmp_path / "d.csv", [("a great \x1b[31mfilm\u202e [bold]tag[/bold]", "positive")])
    done = unfooled("attack", "-m", "fake", "-d", "d.csv", "-a", "deepwordbug", cwd=tmp_path)
    assert "\x1b[31m" not in done.stdout
    assert "\u202e" not in done.stdout
    assert "[bold]tag[/bold]" in done.stdout
    write_csv(tmp_path / "l.csv", [("a film", "\x1b[31mspam"), ("a film", "ham")])
    done = unfooled("attack", "-m", "fake", "-d", "l.csv", "-a", "deepwordbug", code=2, cwd=tmp_path)
    assert "\x1b" not in done.stderr


def test_the_next_attack_is_on_rows_that_were_not_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, files in {
        "set": ["labels.json", "train.jsonl.gz", "test.jsonl.gz", "valid.jsonl.gz"],
        "small": ["labels.json", "train.jsonl.gz", "valid.jsonl.gz"],
        "saved": ["dataset_dict.json", "train/state.json", "test/state.json"],
        "both": ["train.en", "train.de", "test.en", "test.de"],
    }.items():
        for name in files:
            (tmp_path / folder / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).touch()
    (tmp_path / "my rows.csv").touch()
    assert held_out("set", "train", None) == "set"
    assert held_out("set", "test", None) is None
    assert held_out("set", "test", "valid") == "set --split valid"
    assert held_out("small", "train", None) is None
    assert held_out("small", "train", "valid") == "small --split valid"
    assert held_out("saved", "train", "0.1") == "saved"
    assert held_out("both", "train", None) == "both"
    assert held_out("hf:org/name", "train", None) == "hf:org/name"
    assert held_out("d.csv", "train", None) is None
    assert held_out("d.csv", "train", "0.2") is None
    assert held_out("d.csv", "train", "my rows.csv") == "'my rows.csv'"
    assert held_out(None, "train", None) is None


BROKEN_PIPE = """
import os, sys
from dataclasses import dataclass
from unfooled.cli.app import main
from unfooled.cli.command import Command
from unfooled.plugins import registry

@dataclass(frozen=True, kw_only=True)
class Gone(Command):
    'Writes to a pipe of its own.'
    def run(self):
        reader, writer = os.pipe()
        os.close(reader)
        os.write(writer, b"x")

registry.register("command", "gone", Gone)
sys.argv = ["unfooled", "gone"]
main()
"""


def test_a_broken_pipe_inside_a_command_is_no_failed_gate(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BROKEN_PIPE], capture_output=True, text=True, cwd=tmp_path, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (141, "", "")
