"""Logs of TextAttack become runs like any other; the logs here are written for these tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from unfooled.cli.app import app
from unfooled.core.result import Result
from unfooled.errors import DataError, RunFileError
from unfooled.metrics.summary import summarise
from unfooled.report.html import write_html
from unfooled.runs.attack import attack
from unfooled.runs.export import export
from unfooled.runs.file import RunFile
from unfooled.runs.textattack_logs import import_textattack

HEADER = (
    '"original_text","perturbed_text","original_score","perturbed_score","original_output",'
    '"perturbed_output","ground_truth_output","num_queries","result_type"'
)
CSV = f"""{HEADER}
"a [[great]] film , truly","a [[grxat]] film , truly",0.1,0.7,1,0,1,12,"Successful"
"dull and slow","dull and slow",0.2,0.4,0,0,0,30,"Failed"
"so-so","so-so",0.8,0.8,0,0,1,1,"Skipped"
"fine work","[[finer]] work",0.05,0.3,1,1,1,7,"Maximized"
"""
TEXT = """Attack(
  (goal_function):  UntargetedClassification
)

--------------------------------------------- Result 1 ---------------------------------------------
[[Positive (91%)]] --> [[Negative (69%)]]

a [[great]] film , truly

a [[grxat]] film , truly
--------------------------------------------- Result 2 ---------------------------------------------
[[Negative (80%)]] --> [[[FAILED]]]

dull and slow
--------------------------------------------- Result 3 ---------------------------------------------
[[Negative (60%)]] --> [[[SKIPPED]]]

so-so
Number of successful attacks: 1
Number of failed attacks: 1
Number of skipped attacks: 1
Original accuracy: 66.67%
Accuracy under attack: 33.33%
Attack success rate: 50.0%
Average perturbed word %: 25.0%
Average num. words per input: 2.67
Avg num queries: 21.0
"""


def log(folder: Path, name: str, content: str) -> Path:
    (folder / name).write_text(content, encoding="utf-8")
    return folder / name


def results(folder: Path) -> list[Result]:
    with RunFile.read(folder) as run:
        return list(run.results())


def test_a_csv_log(tmp_path: Path) -> None:
    done = import_textattack(log(tmp_path, "r.csv", CSV), out=tmp_path / "run", labels=("neg", "pos"))
    won, failed, skipped, maximized = results(tmp_path / "run")
    assert [result.outcome for result in (won, failed, skipped, maximized)] == [
        "success", "failure", "skipped", "success",
    ]  # fmt: skip
    assert (won.original, won.perturbed, won.queries, won.label) == (
        "a great film , truly", "a grxat film , truly", 12, 1,
    )  # fmt: skip
    assert won.probs == pytest.approx((0.1, 0.9))
    assert won.perturbed_probs == pytest.approx((0.7, 0.3))
    assert [(edit.kind, edit.before, edit.after, edit.at) for edit in won.edits] == [
        ("replace", "great", "grxat", 2)
    ]
    assert skipped.label == 1
    assert skipped.probs == pytest.approx((0.8, 0.2))
    assert (maximized.note, maximized.perturbed) == ("maximized", "finer work")
    assert done.statistics["Avg num queries:"] == 16.33
    assert done.statistics["Average perturbed word %:"] == 37.5
    with RunFile.read(tmp_path / "run") as run:
        assert run.labels == ("neg", "pos")
        assert run.missing() == 0


def test_a_text_log_gives_its_own_closing_statistics(tmp_path: Path) -> None:
    done = import_textattack(log(tmp_path, "log.txt", TEXT), out=tmp_path / "run")
    assert len(done.closing) == 9
    assert done.differences() == []
    won, failed, skipped = results(tmp_path / "run")
    assert (won.outcome, failed.outcome, skipped.outcome) == ("success", "failure", "skipped")
    assert won.label == 1
    assert won.probs == pytest.approx((0.09, 0.91))
    assert won.perturbed_probs == pytest.approx((0.69, 0.31))
    assert skipped.label == 1  # not what the model said
    with RunFile.read(tmp_path / "run") as run:
        assert run.labels == ("Negative", "Positive")
        assert "does not tell the queries;" in run.header["environment"]["notices"][1]


def test_queries_that_a_log_does_not_tell_are_shown_nowhere_as_0(tmp_path: Path) -> None:
    import_textattack(log(tmp_path, "log.txt", TEXT), out=tmp_path / "run")
    shown = CliRunner().invoke(app, ["summary", str(tmp_path / "run")]).output
    lines = [line for line in shown.splitlines() if line.strip().startswith("queries")]
    assert len(lines) == 2
    assert all("–" in line and "0.0" not in line for line in lines)
    told = json.loads(CliRunner().invoke(app, ["summary", str(tmp_path / "run"), "--json"]).output)
    assert (told["queries"]["value"], told["queries"]["median"], told["queries"]["n"]) == (None, None, 0)
    export(tmp_path / "run", tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["queries"], row["asked"], row["facts"]) for row in rows] == [(None, None, {})] * 3
    page = tmp_path / "page.html"
    write_html([tmp_path / "run"], page)
    assert "Accuracy against the query budget" not in page.read_text(encoding="utf-8")


def test_queries_that_a_log_tells_of_some_are_those_of_the_mean(tmp_path: Path) -> None:
    import_textattack(log(tmp_path, "log.csv", CSV.replace(",0,0,0,30,", ",0,0,0,,")), out=tmp_path / "run")
    with RunFile.read(tmp_path / "run") as run:
        queries = summarise(run).queries
    assert (queries.value, queries.n) == (9.5, 2)


def test_a_log_that_tells_the_queries_of_some_says_of_how_many_not(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(CSV.replace(",30,", ",,"), encoding="utf-8")
    import_textattack(tmp_path / "log.csv", out=tmp_path / "run")
    with RunFile.read(tmp_path / "run") as run:
        assert "the queries of 1 of 4 examples; they" in run.header["environment"]["notices"][1]


def test_a_table_at_the_end_and_other_colours(tmp_path: Path) -> None:
    table = "\n+---+\n| Attack Results   |      |\n+---+\n" + "".join(
        f"| {line.rpartition(' ')[0]} | {line.rpartition(' ')[2]} |\n"
        for line in TEXT[TEXT.index("Number of successful") :].splitlines()
    )
    plain = TEXT[: TEXT.index("\nNumber of")].replace("[[", "\x1b[92m").replace("]]", "\x1b[0m")
    done = import_textattack(log(tmp_path, "log.txt", plain + table), out=tmp_path / "run")
    import_textattack(log(tmp_path, "marked.txt", TEXT), out=tmp_path / "marked")
    assert done.closing["Original accuracy:"] == 66.67
    assert results(tmp_path / "run") == results(tmp_path / "marked")


def test_early_logs_without_empty_lines(tmp_path: Path) -> None:
    line = "-" * 45
    content = f"{line} Result 1 {line}\n[[1]]-->[[0]]\na well-made [[film]]\na well-made [[fim]]\n"
    content += f"{line} Result 2 {line}\n[[0]]-->[[[SKIPPED]]]\nof ` this '\n"
    content += "Number of successful attacks: 1\nAverage num. words per input: 3.0\n"
    done = import_textattack(log(tmp_path, "log.txt", content), out=tmp_path / "run")
    assert done.differences() == []  # well-made was two words then, and a backtick none
    assert [result.original for result in results(tmp_path / "run")] == ["a well-made film", "of ` this '"]


def test_fields(tmp_path: Path) -> None:
    pair = "[[[[Premise]]]]: A [[man]] runs.<SPLIT>[[[[Hypothesis]]]]: He moves."
    after = "[[[[Premise]]]]: A [[guy]] runs.<SPLIT>[[[[Hypothesis]]]]: He moves."
    content = f'{HEADER}\n"{pair}","{after}",0.1,0.7,2,0,2,9,"Successful"\n'
    import_textattack(log(tmp_path, "r.csv", content), out=tmp_path / "run")
    (result,) = results(tmp_path / "run")
    assert result.fields == (("premise", "A man runs."), ("hypothesis", "He moves."))
    assert (result.field, result.perturbed) == (0, "A guy runs.")

    both = after.replace("moves", "[[sits]]")
    import_textattack(log(tmp_path, "b.csv", content.replace(after, both)), out=tmp_path / "both")
    (result,) = results(tmp_path / "both")
    assert result.fields == (("text", "Premise: A man runs.\nHypothesis: He moves."),)
    assert result.perturbed == "Premise: A guy runs.\nHypothesis: He sits."
    assert len(result.edits) == 2
    with RunFile.read(tmp_path / "both") as run:
        assert "several fields" in run.header["environment"]["notices"][-1]


def test_insertions_and_deletions(tmp_path: Path) -> None:
    content = f'{HEADER}\n"a [[very]] good film","a good [[old]] film",0.1,0.7,1,0,1,9,"Successful"\n'
    import_textattack(log(tmp_path, "r.csv", content), out=tmp_path / "run")
    (result,) = results(tmp_path / "run")
    assert [(edit.kind, edit.position, edit.before, edit.after) for edit in result.edits] == [
        ("delete", 1, "very", ""),
        ("insert", 3, "", "old"),
    ]
    assert result.perturbed[result.edits[1].at :] == "old film"


def test_a_summary_is_compared(tmp_path: Path) -> None:
    path = log(tmp_path, "r.csv", CSV)
    summary = {"Attack Results": {"Number of failed attacks:": 1, "Avg num queries:": 99.0}}
    told = log(tmp_path, "s.json", json.dumps(summary))
    done = import_textattack(path, out=tmp_path / "run", summary=told)
    assert done.differences() == ["Avg num queries: 99.0 there, 16.33 counted here"]
    with pytest.raises(DataError, match="holds no texts") as caught:
        import_textattack(told, out=tmp_path / "other")
    assert "--summary" in caught.value.remedy
    with pytest.raises(DataError, match="no summary"):
        import_textattack(path, out=tmp_path / "run", summary=log(tmp_path, "t.json", "[" * 100_000))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("r.csv", "text,label\na,b\n", "no column original_text"),
        ("r.csv", HEADER + "\n", "holds no result"),
        ("r.csv", CSV.replace("Failed", "Lost"), "no result type 'lost'"),
        ("r.csv", CSV.replace('0,30,"', '0,many,"'), "line 3 of the file: could not convert"),
        ("r.csv", CSV.replace("0.7,1,0,1,12", "0.7,1,999999,1,12"), "class 999999 is no class"),
        ("log.txt", "just a text\n", "no log of TextAttack"),
        ("log.txt", TEXT.replace("-->", "to"), "result 1 cannot be read"),
        ("log.txt", TEXT.replace("a [[great]] film , truly\n\n", ""), "result 1 cannot be read"),
    ],
)
def test_what_is_no_log(tmp_path: Path, name: str, content: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        import_textattack(log(tmp_path, name, content), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_labels_must_fit(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="none of the labels"):
        import_textattack(log(tmp_path, "log.txt", TEXT), out=tmp_path / "run", labels=("bad", "good"))
    with pytest.raises(DataError, match="at least 2 classes"):
        import_textattack(log(tmp_path, "r.csv", CSV), out=tmp_path / "run", labels=("only",))


def test_the_command_and_what_follows_it(tmp_path: Path) -> None:
    path, run = log(tmp_path, "r.csv", CSV), str(tmp_path / "run")

    def invoke(*arguments: str) -> str:
        done = CliRunner().invoke(app, list(arguments))
        assert done.exit_code == 0, (done.output, done.exception)
        return done.output

    out = invoke("import", "textattack", str(path), "--labels", "negative,positive", "--out", run)
    assert "imported from a log of TextAttack" in out
    assert "Attack success rate: 66.67" in out
    invoke("measure", run, "--with", "edit-distance")
    invoke("gate", run, "--max-success", "1.0")
    invoke("transfer", "--from", run, "--to", "fake")
    invoke("report", run, "--out", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "imported from a log of TextAttack" in page
    with pytest.raises(RunFileError, match="holds a run with other settings"):
        attack("fake", [("a great film", "positive")], "deepwordbug", out=run)
