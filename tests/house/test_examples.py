"""The examples do what they say: the workflow, the action, the image and the notebooks."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

from scripts import refresh_notebooks
from tests.house import tree
from tests.toy import write, write_cocktail

WORKFLOW = tree.ROOT / "examples" / "ci" / "ranktilt.yml"
STEP = re.compile(
    r"^      - name: (\w+).*?^        run: (.*?)(?=^      - |^      #|\Z)", re.DOTALL | re.MULTILINE
)
SETTING = re.compile(r"^  ([A-Z_]+): \"?([^\"#\n]+?)\"?(?: +#.*)?$", re.MULTILINE)


def scripts() -> dict[str, str]:
    steps = STEP.findall(WORKFLOW.read_text(encoding="utf-8").partition("\njobs:")[2])
    return {name: textwrap.dedent(text.removeprefix("|\n")) for name, text in steps}


def settings() -> dict[str, str]:
    return dict(SETTING.findall(WORKFLOW.read_text(encoding="utf-8").partition("\njobs:")[0]))


def shell(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a build server does."""
    path = os.pathsep.join(
        [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
    )
    names = {
        f"GIT_{who}_{field}": "x@x"
        for who in ("AUTHOR", "COMMITTER")
        for field in ("NAME", "EMAIL")
    }
    environment = {
        **os.environ,
        **settings(),
        "AUDITED": "toy -r bm25",
        **names,
        **more,
        "PATH": path,
    }
    command = ["bash", "-e", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def prepare(folder: Path) -> None:
    """Write the collection that is audited, and the command."""
    words = [
        "apple",
        "river",
        "stone",
        "cloud",
        "tiger",
        "violin",
        "harbour",
        "lantern",
        "copper",
        "meadow",
        "candle",
        "rocket",
    ]
    ends = {"human": "is seen here", "llm": "can be seen"}
    write_cocktail(
        folder / "toy",
        # Either side is longer in every second pair, so that scores vary and nobody is favoured.
        corpora={
            side: [
                {"_id": f"d{n}", "text": f"{w} {end}{(n + row) % 2 * ' over there'}"}
                for n, w in enumerate(words)
            ]
            for row, (side, end) in enumerate(ends.items())
        },
        queries=[{"_id": f"q{n}", "text": word} for n, word in enumerate(words)],
        qrels=[(f"q{n}", f"d{n}", 1) for n in range(len(words))],
    )
    command = write(
        folder / "bin" / "ranktilt", f'#!/bin/sh\nexec "{sys.executable}" -m ranktilt "$@"\n'
    )
    command.chmod(0o755)


@pytest.mark.long
def test_the_baseline_is_the_one_of_the_base_branch_and_without_one_the_limit_alone_counts(
    tmp_path: Path,
) -> None:
    prepare(tmp_path)
    begun = f"git init -q -b main .\n{scripts()['Audit']}\nmv audit.json ranktilt-baseline.json"
    done = shell(
        f"{begun}\ngit add toy ranktilt-baseline.json\ngit commit -q -m first\n"
        "git checkout -q -b x",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    # The pull request brings a baseline of its own, which must not count.
    assert (
        shell("echo {} > ranktilt-baseline.json; git commit -q -a -m mine", tmp_path).returncode
        == 0
    )
    assert shell(scripts()["Audit"], tmp_path).returncode == 0
    done = shell(scripts()["Gate"], tmp_path, BASE="main", MAX_TILT="199")
    assert done.returncode == 0, done.stderr
    assert "no growth" not in done.stdout
    assert "growth of at most 5 points since the baseline" in done.stdout
    assert (tmp_path / "ranktilt.xml").exists()
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("## ✅ RankTilt")
    done = shell(scripts()["Gate"], tmp_path, BASE="0" * 40, MAX_TILT="199")
    assert done.returncode == 0
    assert "no ranktilt-baseline.json at 0000" in done.stdout
    assert "since the baseline" not in done.stdout


def test_every_setting_is_used() -> None:
    text = "\n".join(scripts().values())
    assert set(settings()) == set(re.findall(r"\$([A-Z_]+)", text)) - {
        "BASE",
        "GITHUB_STEP_SUMMARY",
    }


def action_steps() -> dict[str, dict[str, Any]]:
    """Return the steps of the action that run a script, by what they call."""
    yaml = pytest.importorskip("yaml")
    steps = yaml.safe_load((tree.ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    commands = {"pip": "install", '"audit"': "audit", '"gate"': "gate"}
    scripts_of = {step["run"]: step for step in steps if "run" in step}
    by_name = {}
    for command, name in commands.items():
        (script,) = (text for text in scripts_of if command in text)
        by_name[name] = scripts_of[script]
    return by_name


def act(
    step: Mapping[str, Any], folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a step of the action in the shell that it names."""
    program = {"python": sys.executable, "bash": "bash"}[step["shell"]]
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    return subprocess.run(
        [program, "-c", step["run"]],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("options", "code"), [("--max-tilt 199", 0), ("--max-tilt 199 --run-name none", 2)]
)
def test_the_steps_of_the_action_audit_gate_and_tell(
    tmp_path: Path, options: str, code: int
) -> None:
    steps = action_steps()
    prepare(tmp_path)
    summary = tmp_path / "summary"
    audited = act(steps["audit"], tmp_path, AUDITED="toy -r bm25 --set statistics.resamples=200")
    assert audited.returncode == 0, audited.stderr
    gated = act(steps["gate"], tmp_path, OPTIONS=options, GITHUB_STEP_SUMMARY=str(summary))
    assert gated.returncode == code, gated.stderr
    assert (tmp_path / "ranktilt-report" / "report.html").exists()
    if code == 0:
        assert summary.read_text(encoding="utf-8").startswith("## ")


@pytest.mark.parametrize(
    "attack",
    [
        "$(touch x)",
        "`touch x`",
        "; touch x",
        "&& touch x",
        "| touch x",
        "\ntouch x\n",
        "> x",
        '"$(touch x)"',
        "' ; touch x ; '",
        "${IFS}touch${IFS}x",
    ],
)
def test_no_input_of_the_action_is_run(tmp_path: Path, attack: str) -> None:
    """Both commands get the words as they are, and an input that no shell could read is refused."""
    steps = action_steps()
    words = write(tmp_path / "bin" / "ranktilt", '#!/bin/sh\nprintf "%s\\n" "$@" > words\n')
    words.chmod(0o755)
    (tmp_path / "ranktilt-report").mkdir()
    page = str(tmp_path / "summary")
    audited = act(steps["audit"], tmp_path, AUDITED=f"toy -r bm25 {attack}")
    assert audited.returncode == 0
    first, *words_of_audit = (tmp_path / "words").read_text(encoding="utf-8").split("\n")
    assert (first, words_of_audit[:3]) == ("audit", ["toy", "-r", "bm25"])
    gated = act(steps["gate"], tmp_path, OPTIONS=f"--max-tilt 5 {attack}", GITHUB_STEP_SUMMARY=page)
    assert gated.returncode == 0
    installed = act(steps["install"], tmp_path, EXTRAS=attack, SOURCE="/nowhere")
    assert installed.returncode != 0
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("name", "variable"), [("audit", "AUDITED"), ("gate", "OPTIONS")])
def test_an_open_quote_in_an_input_of_the_action_is_named(
    tmp_path: Path, name: str, variable: str
) -> None:
    done = act(action_steps()[name], tmp_path, **{variable: "toy -r 'bm25"})
    assert done.returncode == 1
    assert done.stderr == f'{name}: No closing quotation: "toy -r \'bm25"\n'


def test_no_step_of_the_action_puts_an_input_into_its_script() -> None:
    for step in action_steps().values():
        assert "${{" not in step["run"]
        assert "eval" not in step["run"]


def test_the_dockerfile_holds_known_instructions_and_no_root() -> None:
    text = re.sub(r"\\\n", " ", (tree.ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {line.split()[0] for line in lines} <= known
    assert [line.split()[0] for line in lines].index("USER") < len(lines) - 2


@pytest.mark.long
@pytest.mark.parametrize("page", refresh_notebooks.notebooks(), ids=lambda page: page.stem)
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_shows_what_it_is_stored_with(page: Path) -> None:
    stored = nbformat.read(page, 4)
    fresh = refresh_notebooks.executed(page)
    message = f"if this is meant: python scripts/refresh_notebooks.py {page.relative_to(tree.ROOT)}"
    steps = [
        list(map(refresh_notebooks.without_numbers, refresh_notebooks.texts(notebook)))
        for notebook in (stored, fresh)
    ]
    assert steps[0] == steps[1], message
    outputs = [output for cell in stored.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) for output in outputs)
    unwanted = [output for output in outputs if output.output_type == "error" or "name" in output]
    assert [output for output in unwanted if output.get("name") != "stdout"] == []


def test_a_notebook_is_stored_anew_where_its_texts_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.ipynb"
    cells = [nbformat.v4.new_code_cell("1 + 1"), nbformat.v4.new_code_cell("print('two')")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), page)
    output = nbformat.v4.new_output("execute_result", {"text/plain": "2"}, execution_count=1)

    def executed(page: Path) -> Any:
        notebook = nbformat.read(page, 4)
        notebook.cells[0].outputs = [output]
        return notebook

    monkeypatch.setattr(refresh_notebooks, "executed", executed)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert refresh_notebooks.main([str(page)]) == 0
    stored = page.read_bytes()
    assert refresh_notebooks.texts(nbformat.read(page, 4)) == ["2"]
    output["metadata"] = {"figure": 0.1 + 0.2}
    refresh_notebooks.main([str(page)])
    assert page.read_bytes() == stored  # whose texts are the same


_SHOWN = [
    "import time, polars as pl, ranktilt as rt\nfrom ranktilt.progress import report\n"
    "collection = rt.bundled()\n"
    "run = rt.ranker('bm25').rank(collection)\n"
    "audit = rt.audit(collection, run, 'nDCG@3', resamples=100); audit",
    "audit.plot()",
    "rt.explain(collection, ['overlap'])",
    "docs = collection.docs.with_columns(temperature=pl.lit(0.7))\n"
    "warm = rt.Collection(docs, collection.queries, collection.qrels)\n"
    "rt.audit_sources(warm, [rt.ranker('bm25')], 'nDCG@3', resamples=100)",
    "rt.mitigate(collection, rt.ranker('bm25'), ['nDCG@3'])",
    "audit.frame('tilts').to_pandas()",
    (
        "for n in range(301):\n    report('encoding', n, 300); report('asking', n, 300); "
        "time.sleep(0.004)"
    ),
    "for n in range(200):\n    report('broken off', n, 300); time.sleep(0.004)\nraise ValueError",
]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_results_show_themselves_and_progress_is_one_output_a_cell(tmp_path: Path) -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in _SHOWN]
    )
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, allow_errors=True, resources=resources).execute()
    outputs = [
        [
            output
            for output in cell.outputs
            if output.output_type != "display_data" or output.data["text/plain"]
        ]
        for cell in notebook.cells
    ]
    for number in (0, 2, 3, 4, 5):
        [output] = outputs[number]
        assert "<table" in output.data["text/html"], notebook.cells[number].source
        assert len(output.data["text/plain"]) < 6000
    assert outputs[0][0].data["text/plain"].startswith("Means and Relative Δ, in %")
    [figure] = outputs[1]
    assert "mark" in str(figure.data["application/vnd.vegalite.v5+json"])
    assert [output.data for output in notebook.cells[6].outputs] == [
        {"text/html": "", "text/plain": ""}
    ]
    bar, error = notebook.cells[7].outputs
    assert bar.data["text/plain"].endswith("% broken off")
    assert error.ename == "ValueError"
