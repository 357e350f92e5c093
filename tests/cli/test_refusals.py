"""What cannot be done is one line that says why, exit code 2, and nothing is written: a line for
each refusal.
"""

import json
import shlex
from pathlib import Path

import pytest

import ranktilt as rt
from tests.auditing.test_gate import LEVEL
from tests.auditing.test_pairwise import people
from tests.cli.conftest import SCORES, Cli, judgments, labels, refused, two_model_folder
from tests.toy import raw_docs, write, write_beir, write_cocktail, write_run

BIG = "1" * 5_000
"""More digits than Python's ``int`` reads."""
AUDIT = [
    (
        "toy -r bm25 -m RelativeDelta",
        "measure RelativeDelta needs a measure of relevance, such as RelativeDelta(nDCG@3)",
    ),
    ("toy -r bm25 -m RelativeDelta()", "measure RelativeDelta needs a measure of relevance"),
    ("toy -r bm25 -m RelativeDelta@3", "measure RelativeDelta needs a measure of relevance"),
    (
        "toy -r bm25 -m RelativeDelta(nDCG@3)",
        "RelativeDelta(nDCG@3): name the measure alone, nDCG@3; an audit takes Relative Δ of every",
    ),
    ("toy -r bm25 -m GradeGap", "GradeGap compares grades of a judge: use ranktilt judge"),
    (f"toy -r bm25 -m nDCG@{BIG}", "cutoff of measure 'nDCG@1111"),
    (f"toy -r bm25 -m P(rel={BIG})@3", "expected a whole number, got '1111"),
    (f"toy -r bm25@{BIG}", "the depth @1111111111… has 5,000 digits"),
    (
        f"toy -r engine:m:f(repeats={BIG})",
        "expected a whole number of at most 18 digits, got '1111",
    ),
    (f"toy -r bm25 --by length:{BIG}", "expected 2 to 10 bins, such as length:3, or a value with"),
    ("gone -r bm25", "gone: no such folder"),
    ("toy --run gone", "gone: cannot be read: No such file or directory"),
    (
        "broken -r bm25 --json out/a.json --save out --per-query out/q.csv",
        "human.jsonl:4: expected one JSON object",
    ),
    ("toy", "nothing to audit: name a ranker, such as -r bm25, or a run, such as --run FILE"),
    ("toy -r bm52", "unknown ranker 'bm52'; did you mean 'bm25'? (valid: "),
    ("toy -r bm25 --pair human,", "--pair expects two groups, such as human,llm; got 'human,'"),
    (
        "toy -r bm25 --protected llm --pair llm,human",
        "--protected GROUP means --pair GROUP,rest; give only one of",
    ),
    ("toy -r bm25 --protected ' '", "--protected expects a group, such as female"),
    ("toy -r bm25 --margin=-1", "--margin: expected a margin of at least 0"),
    (
        "--run run.trec",
        (
            "the sources of the documents are unknown: name a collection DIR, or a label file "
            "(--groups FILE)"
        ),
    ),
    ("-r bm25 --groups labels.tsv", "ranker 'bm25' needs texts: name a collection DIR"),
    (
        "--run run.trec --groups labels.tsv --controls",
        "--controls rank changed texts: name a collection DIR",
    ),
    (
        "--run run.trec --groups labels.tsv --source llm",
        "--source chooses what to rank: name a collection DIR",
    ),
    ("--run run.trec --groups labels.tsv --split dev", "--split needs a collection DIR"),
    (
        "--run run.trec --groups labels.tsv --by none",
        "the card needs a column to group by; omit --by none",
    ),
    (
        "--run run.trec --groups labels.tsv --by length:3",
        "--by length:3 needs texts: name a collection DIR",
    ),
    (
        "--run run.trec --groups labels.tsv --name 1",
        "--name expects a value and its name, such as 1=ai; got 1",
    ),
    (
        "run.trec --groups labels.tsv",
        "run.trec: expected a collection DIR, got a file; if it is a run, type --run run.trec",
    ),
    ("gone -r bm25 --score-order rank", "--score-order needs a run"),
    ("toy -r bm25 --queries q.tsv", "--queries needs a run"),
    ("toy -r bm25 --rest human", "--rest needs a label file: --groups FILE"),
    ("toy -r bm25 --rest=", "--rest needs a label file: --groups FILE"),
    ("toy -r bm25 --groups labels.tsv --rest=", "--rest expects a label for all other documents"),
    (
        "toy -r bm25 --json toy/queries.jsonl",
        "--json toy/queries.jsonl: this file is read too; choose another file",
    ),
    (
        "toy -r bm25 --per-query toy/corpus/human.jsonl",
        "--per-query toy/corpus/human.jsonl: this file is read too",
    ),
    (
        "three -r bm25 --source gpt",
        "only source 'gpt': name another one to compare with, such as 'human'",
    ),
    ("three -r bm25 --reference robot", "unknown source 'robot' (valid: human, llm, gpt"),
    ("--run run.trec --groups labels.tsv --mixed", "--mixed ranks all sources: name a collection"),
    (
        "--run run.trec --groups labels.tsv --ignore-unknown",
        "--ignore-unknown needs a collection DIR",
    ),
    ("toy --run run.trec --text title", "--text needs a ranker that reads texts"),
    ("toy -r bm25 --by none --reference llm", "--reference needs a column to group by; omit --by"),
    (
        "three -r bm25 --pair human,llm --reference gpt",
        "--reference gpt: no pair that you named has this group; omit it",
    ),
    ("toy -r bm25 --max-queries 5", "--max-queries needs a sequential audit: --stop-at-tilt"),
    (
        "toy -r bm25 --stop-at-tilt 9 --card",
        "--card does not apply to a sequential audit; omit it or --stop-at-tilt",
    ),
    ("toy -r bm25 --stop-at-tilt 9 --margin 3", "--margin does not apply to a sequential audit"),
    ("toy -r bm25 --stop-at-tilt 9 -r tfidf", "a sequential audit takes one ranker or live engine"),
    (
        "toy -r bm25 --stop-at-tilt 9 -m P@1 -m P@2",
        "a sequential audit takes one measure and one pair",
    ),
    (
        "toy -r bm25 --stop-at-tilt 9 --set statistics.resamples=500",
        "--set statistics.resamples: a sequential audit reads only statistics.seed",
    ),
    (
        "-r engine:a:b --stop-at-tilt 9 --queries q.tsv --groups labels.tsv --split dev",
        "--split needs a collection DIR",
    ),
    (
        "-r engine:a:b --stop-at-tilt 9 --queries q.tsv --groups labels.tsv --source llm",
        "--source: name a collection DIR, or omit it",
    ),
    ("-r engine:a:b --stop-at-tilt 9", "name --queries FILE and --groups FILE, or a collection"),
    (
        "-r engine:a:b --stop-at-tilt 9 --queries q.tsv --groups labels.tsv --rest ai",
        "--rest needs a list of all",
    ),
]
GATE = [
    ("new.json --pair human", "--pair expects two groups, such as human,llm; got 'human'"),
    ("log.json", "expected an audit"),
    (
        "new.json --junit -",
        "--junit writes a file; standard output (-) is for --markdown and --json",
    ),
    (
        "new.json --markdown - --json -",
        "--markdown and --json cannot both go to stdout; name a file for one of them",
    ),
    ("new.json --junit new.json", "--junit new.json: this file is read too; choose another file"),
    (
        "new.json --baseline old.json --json old.json",
        "--json old.json: this file is read too; choose another file",
    ),
    (
        "new.json --markdown x --json x",
        "--json x: this file is written by --markdown too; choose another file",
    ),
    ("new.json --max-gap 0", "--max-gap: it needs an audit of judges (ranktilt judge --json)"),
    ("new.json --min-tau 0", "--min-tau: it needs an audit of judges (ranktilt judge --json)"),
    ("new.json --min-effect 0", "--min-effect needs a baseline: --baseline OLD.json"),
    ("citations.json --min-effect 0", "--min-effect: an audit of citations takes --max-tilt"),
    ("citations.json --label-errors=", "--label-errors: an audit of citations is corrected where"),
]
CITE = [
    ("answers.jsonl --rest ai", "--rest needs a label file: --groups FILE"),
    ("answers.jsonl --groups toy --rest ai", "--rest needs a label file: --groups FILE"),
    ("answers.jsonl --groups labels.tsv --rest=", "--rest expects a label for all other documents"),
    (
        "answers.jsonl --groups toy --by-factor --rest ai",
        "--rest: --by-factor compares the levels of each factor; omit it",
    ),
    ("answers.jsonl --groups toy --by-factor --by source", "--by: --by-factor compares the levels"),
    ("answers.jsonl --groups toy --by-factor --margin 5", "--margin: --by-factor compares the"),
]
COMPARE = [
    (
        "new.json",
        "give either an old audit (OLD.json) or a run of the same audit (--baseline-run RUN)",
    ),
    (
        "new.json --baseline-run run --max-left-out 5",
        "--max-left-out: the runs of one audit have the same queries",
    ),
    (
        "new.json old.json --baseline-run run",
        "give either an old audit (OLD.json) or a run of the same audit",
    ),
]
RANK = [
    ("toy -o a", "nothing to rank with: name a ranker, such as -r bm25"),
    ("toy -r bm25 -r tfidf -o a", "-o a: holds one run, got 2 rankers; "),
    ("toy -r bm25 -r tfidf -o -", "-o -: holds one run, got 2 rankers; name a "),
    ("toy -r bm25 -o toy/queries.jsonl", "-o toy/queries.jsonl: this file is read too; "),
    ("toy -r bm25 -o toy/queries.jsonl/", "toy/queries.jsonl/bm25.trec: cannot be written: "),
    ("toy -r replay:run.json -o run", "-o, its sidecar run.json: this file is read"),
    (
        "toy -r bm25",
        "no output: name a file (-o FILE), or ask for the cost of language models (--dry-run)",
    ),
    ("toy -r replay:run.trec --text title -o a", "--text needs a ranker that reads texts"),
    ("toy -r bm25 --dry-run", "--dry-run needs a ranker that asks a language model"),
    ("toy -r bm25 --price 1,2 -o a", "--price needs --dry-run"),
    (
        "toy -r listwise:openai:m --dry-run --price 1",
        "--price expects two numbers, per million input and output",
    ),
]
CHECK = [
    ("toy --split dev", "toy/qrels: unknown split 'dev' (valid: test); choose one with --split"),
    ("toy -m nDCG@3", "--measure needs a ranker: name one, such as -r bm25"),
    ("toy --text text", "--text needs a ranker or an encoder: name one with -r or --similarity"),
    ("run.trec -r bm25", "-r: it examines a collection, and run.trec is a file; omit it"),
    ("run.trec --instrument", "--instrument: it examines a collection, and run.trec is a file"),
    ("run.trec -m nDCG@3 -r bm25", "-r: it examines a collection, and run.trec is a file; omit it"),
    ("run.trec -m nDCG@3 --instrument", "-m: it examines a collection, and run.trec is a file"),
    ("run.trec --similarity dense:minilm", "--similarity: it examines a collection, and run.trec"),
    (
        "run.trec --text title --similarity dense:minilm",
        "--similarity: it examines a collection, and run.trec is a file; omit it",
    ),
    ("run.trec --reference human", "--reference: it examines a collection, and run.trec is a"),
    ("run.trec --split dev", "--split: it examines a collection, and run.trec is a file"),
    ("toy --set check.equivalence=200", "[check] equivalence: expected points from 0 to 100"),
    ("toy --similarity bm25", "similarity needs vectors from an encoder, such as dense:minilm"),
    ("toy --similarity dense:nowhere/at-all", "'nowhere/at-all'"),
    (f"toy -r bm25 --set statistics.resamples={BIG}", "[statistics] resamples: integer value out"),
    (f"{BIG}", "File name too long"),
]
EXPLAIN = [
    ("toy --attribution", "--attribution needs rankers or runs: name one or more with -r or --run"),
    ("--groups labels.csv", "name a collection DIR; without one: --groups FILE and --run FILE"),
    ("--groups labels.csv -r bm25", "ranker 'bm25' needs texts: name a collection DIR"),
    ("toy --by-factor", "--by-factor needs rankers: name one or more with -r"),
    ("toy --by-factor -r bm25 --attribution", "--by-factor examines no texts: omit --probe,"),
    ("toy --by-factor -r bm25", "no factors: expected columns factor:NAME of low and high"),
    (
        "toy --by-factor -r bm25 --adopters 0,half",
        "--adopters: expected points from 0 to 100, such as 10 or 10%; got half",
    ),
    (
        "toy --by-factor -r bm25 --reference human",
        "--reference: --by-factor compares the levels of each factor; omit it",
    ),
    ("toy --by-factor -r bm25 --by source", "--by: --by-factor compares the levels of each factor"),
    ("citations.json --by source", "--by: an audit of citations is explained by --probe and the"),
    ("toy --adopters 0,1", "--adopters needs --by-factor"),
    ("toy --text title", "--text needs a ranker or an encoder: name one with -r or --encoder"),
    ("--run run.trec --groups labels.tsv --split dev", "--split needs a collection DIR"),
    ("toy --probe theorem", "theorem 4.1 needs two or three language models"),
]
MITIGATE = [
    (
        "toy -r bm25 --method fair-rerank(target=1) --method fair-rerank(target=5)",
        "expected distinct methods; got fair-rerank, fair-rerank",
    ),
    (
        "toy -r bm25 --method offset(instrument=fluency)",
        "unknown option of offset 'instrument' (valid: none)",
    ),
    (
        "toy -r bm25 --method fair-rerank(targt=3)",
        "unknown option of fair-rerank 'targt'; did you mean 'target'?",
    ),
    (
        "toy -r bm25 --method fair-rerank(target=far)",
        "option 'target' of fair-rerank: expected a number, got 'far'",
    ),
    ("toy -r bm25 --by none", "mitigation needs a column of groups (by)"),
    ("toy -r bm25 -r tfidf", "mitigate takes one ranker or run; got 2"),
    (
        "toy --run run.trec --fit lone",
        "--fit needs a ranker (-r): a saved run cannot rank another collection",
    ),
    ("toy --run run.trec --text title", "--text needs a ranker that reads texts"),
    ("toy -r bm25 --fit toy", "no query of toy is left to fit on"),
    ("toy -r bm25 --pair human,llm --pair llm,human", "mitigate takes one pair of groups; got 2"),
]
PAIRWISE = [
    ("people", "name either a model (--llm openai:MODEL) or stored choices (--decisions FILE)"),
    ("people --decisions d --pairs 3", "--pairs asks a model; omit it with --decisions"),
    ("people --decisions d --preset dai", "--preset asks a model; omit it with --decisions"),
    (
        "people --llm openai:m --dry-run --by gender --score-order rank",
        "--score-order needs a run: --candidates RUN",
    ),
    ("people --decisions d --max-failures 5", "--max-failures asks a model; omit it with"),
    (
        "people --llm openai:m --prompt pairwise-sensitive",
        "--prompt pairwise-sensitive needs an attribute, such as",
    ),
    ("people --llm openai:m --price 1,2", "--price needs --dry-run"),
    (f"people --llm openai:m --dry-run --pairs {BIG}", "expected a whole number, got 1111"),
    ("people --llm openai:m@3", "--llm expects one model, such as openai:MODEL, got 'openai:m@3'"),
]
REPORT = [
    ("audit.json --format svg", "svg is a format for figures; name a folder: --figures DIR"),
    ("audit.json --figures f --format csv", "--figures draws svg, pdf or png, not csv"),
    ("audit.json --figures f -o r.html", "--figures writes only figures; omit -o"),
    ("audit.json --layout dai-3 -o t.html", "t.html: a page has no layout; name a .tex, .md or"),
    ("audit.json --layout xx -o t.html", "unknown layout 'xx' (valid: paper, dai-1, dai-2"),
    (
        "audit.json --layout dai-3 --format latex -o t.md",
        "-o t.md: expected a name that ends in .tex, for latex; --format markdown",
    ),
    ("audit.json --figures f --layout paper", "paper is a table, not a figure; choose --format"),
    ("audit.json --figures f --no-texts", "--no-texts is for pages and tables"),
    ("audit.json -o r.html --query q1", "--query needs a table of texts: --layout dai-10"),
    ("audit.json --layout paper --format csv --query q1", "--query needs a table of texts: "),
    ("audit.json --layout dai-10 --query q99", "unknown query 'q99' (valid: q1"),
    ("audit.json -o audit.json", "-o audit.json: this file is read too; choose another file"),
    ("audit.json cells.csv -o a.html", "cells.csv: expected a result of RankTilt as JSON"),
    ("audit.json --open --format latex", "--open needs the page (html), not latex"),
]
DATA = [
    ("load gone -o x", "gone: no such folder"),
    ("mix toy -o toy/queries.jsonl", "toy/queries.jsonl/"),
    (
        "build fair-ranking people.csv --protected female --blocks 3,3 -o x",
        "--blocks expects four numbers, such as",
    ),
    (
        "build fair-ranking people.csv --protected female --by sex -o x",
        "people.csv: unknown column of groups 'sex'",
    ),
    (
        "build retrieval-qa qa.jsonl --shares x -o x",
        "--shares expects three numbers, such as 80,10,10; got 'x'",
    ),
]
GENERATE = [
    (
        "rewrite toy --llm openai:m",
        "no output: name a folder (-o DIR), or ask for the cost (--dry-run)",
    ),
    ("rewrite toy --llm openai:m -o x --price 1,2", "--price needs --dry-run"),
    ("rewrite toy --llm openai:m -o x --pool-depth 9", "--pool-depth needs a pool"),
    (
        "rewrite toy --llm openai:m -o toy",
        "-o toy: this is the collection to read; choose another",
    ),
    (
        "rewrite toy --llm openai:m --dry-run --price cheap",
        "--price expects two numbers, per million input and",
    ),
    ("rewrite toy --llm openai:m --dry-run --prompt q.txt", "q.txt: {query} cannot be filled in"),
    (
        "rewrite toy --llm 'transformers:m(base_url=http://x)' --dry-run",
        "unknown option of transformers 'base_url'",
    ),
    ("rewrite toy -o x", "no model: name one, such as --llm openai:MODEL"),
    ("rewrite gone -o x", "gone: no such folder"),
    ("answer gone.tsv -o x", "gone.tsv: no such file or folder"),
    (
        "answer q.tsv --llm openai:m",
        "no output: name a folder (-o DIR), or ask for the cost (--dry-run)",
    ),
    (
        "answer q.tsv --llm openai:m --dry-run --source-name human",
        "source 'human' is reserved for documents by people",
    ),
    (
        "answer q.tsv --llm openai:m --dry-run --split a/b",
        "--split expects a name such as train, got 'a/b'",
    ),
    (
        "answer q.tsv --llm openai:m -o lone",
        "lone/corpus.jsonl: is not part of answers and would be lost; move it",
    ),
    (
        "answer q.tsv --llm openai:m --dry-run --prompt none.txt",
        "none.txt: expected {query}, where the query goes",
    ),
    ("answer twice.tsv --llm openai:m --dry-run", "twice.tsv:2: query 'q1' occurs twice"),
    (
        "answer notab.tsv --llm openai:m --dry-run",
        "notab.tsv:2: expected id and text separated by a tab, got 1 fields",
    ),
    (
        "answer more.tsv --llm openai:m --dry-run",
        "more.tsv:1: expected id and text separated by a tab, got 3 fields",
    ),
    (
        "answer noid.tsv --llm openai:m --dry-run",
        "noid.tsv:1: expected id and text separated by a tab, got no id",
    ),
    ("answer blank.tsv --llm openai:m --dry-run", "blank.tsv: query 'q2' has no text"),
    ("answer empty.tsv --llm openai:m --dry-run", "empty.tsv: the file is empty"),
    ("answer head.tsv --llm openai:m --dry-run", "head.tsv: expected queries, got a header only"),
    (
        "versions toy --factors length --by-rule",
        "no output: name a folder (-o DIR), or ask for the cost (--dry-run)",
    ),
    (
        "versions --factors length --by-rule -o x",
        "nothing to read: name a collection, or versions (--table FILE)",
    ),
    ("versions gone --factors length --by-rule -o x", "gone: no such folder"),
    (
        "versions toy --factors lenght --by-rule -o x",
        "unknown factor 'lenght'; did you mean 'length'? (valid: source, facts, ",
    ),
    (
        f"versions toy --factors repetition:{BIG} --by-rule -o x",
        "expected how often the answer is stated, 2 to",
    ),
    (
        "versions toy --factors ' ' --by-rule -o x",
        "expected a factor (valid: source, facts, words, gender, length, ",
    ),
    (
        "versions toy --factors length,words,facts,fluency,gender --by-rule --design 8 -o x",
        "is of resolution III: effects",
    ),
    (
        "versions toy --factors length --by-rule --cells 3 -o x",
        "expected 2 to 2 cells per origin of length, got 3",
    ),
    (
        "versions toy --factors length -o x",
        "factor 'length' needs a language model: name one (--llm), or use --by-rule",
    ),
    (
        "versions toy --factors length --by-rule --llm openai:m -o x",
        "every factor is made by rule: leave out the language mod",
    ),
    (
        "versions toy --factors style --by-rule -o x",
        "factor 'style' has no rule: leave out --by-rule and name a model, --llm",
    ),
    (
        "versions toy --factors length --by-rule --dry-run",
        "nothing to price: rules make every factor",
    ),
    ("versions toy --factors source --llm openai:m -o x --price 1,2", "--price needs --dry-run"),
    (
        "versions toy --factors length --by-rule -o toy",
        "-o toy: this is the collection to read; choose another folder",
    ),
    (
        "versions toy --factors length --by-rule -o lone",
        "lone/corpus.jsonl: is not part of versions and would be lost; move it, or",
    ),
    (
        "versions toy --factors length --factor length=a,b --by-rule -o x",
        "--factor needs versions: --table FILE",
    ),
    ("versions --table gone.csv --factors length -o x", "gone.csv: no such file"),
    (
        "versions --table people.csv --factors length -o x",
        "people.csv: expected the columns origin, text and length; missin",
    ),
    (
        "versions --table people.csv --factors length --factor length -o x",
        "--factor expects a column with its low and its high",
    ),
    (
        "versions --table people.csv --factors length --by-rule -o x",
        "--table already holds versions; only --factors, --factor",
    ),
    *(
        (
            f"versions --table people.csv --factors length {default} -o x",
            "--table already holds versions; only --factors, --factor",
        )
        for default in ("--design full", "--seed 0", "--attempts 3")
    ),
]
SOURCES = (
    "--sources: expected SOURCE or SOURCE=N, each source once, such as human=500,llm=500; got "
)
TRAIN = [
    (
        "cross-encoder toy -o m --base-model x --set steps=3 --minutes 2",
        "choose a number of steps or of minutes, not both",
    ),
    ("cross-encoder toy -o m --base-model x --sources human=²", f"{SOURCES}'human=²'"),
    ("cross-encoder toy -o m --base-model x --sources human,human=2", f"{SOURCES}'human=2'"),
    (f"cross-encoder toy -o m --base-model x --sources human={BIG}", f"{SOURCES}'human=1111"),
    (
        "retriever toy -o m --base-model x --split test --debias x --debias paper",
        "--debias: expected a number of at",
    ),
    (
        "retriever toy -o m --base-model x --format table",
        "--format: only a sweep compares retrievers; give several --debias or --negatives, or omit",
    ),
    (
        "study hot",
        "nothing to train: name an encoder to start from, such as --base-model minilm",
    ),
    (
        "study hot --base-model x --curve human",
        "--curve: expected SOURCE=N, each source once, such as",
    ),
    (
        "study hot --base-model x --zero-shot a,b",
        "--zero-shot expects a collection, then qrels=FILE,",
    ),
    (
        "study hot --base-model x --zero-shot ,name=a",
        "--zero-shot expects a collection, such as a folder",
    ),
]
TOOLS = [
    (
        "doctor contreiver",
        "unknown model 'contreiver'; did you mean 'dense:contriever'? (valid: dense:minilm, dense:",
    ),
    (
        "doctor --all",
        (
            "--all needs --prune: ranktilt tools doctor --prune --all removes everything that was "
            "not "
            "paid"
        ),
    ),
    (
        "doctor --prune --all one",
        "--all removes everything; omit it to remove only what is from MODEL",
    ),
    ("doctor --prune --json a.json", "--json: --prune removes entries and shows none; omit one"),
    ("doctor --prune --format csv", "--format: --prune removes entries and shows none; omit one"),
    ("doctor --prune --format table", "--format: --prune removes entries and shows none; omit one"),
    (
        "replay-log log.json --candidates run.trec --by none --name 1=ai",
        "--name: --by none compares no groups; omit one of them",
    ),
    (
        "replay-log log.json --candidates run.trec --by none --groups labels.tsv",
        "--groups: --by none compares no groups; omit one of them",
    ),
    (
        "replay-log log.json --candidates run.trec --by none --reference=",
        "--reference: --by none compares no groups; omit one of them",
    ),
]
REFUSALS = {
    "audit": AUDIT,
    "cite": CITE,
    "gate": GATE,
    "compare": COMPARE,
    "rank": RANK,
    "check": CHECK,
    "explain": EXPLAIN,
    "mitigate": MITIGATE,
    "pairwise": PAIRWISE,
    "report": REPORT,
    "data": DATA,
    "generate": GENERATE,
    "tools": TOOLS,
    "train": TRAIN,
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the commands above name; nothing may change it."""
    folder = tmp_path_factory.mktemp("inputs")
    toy = write_cocktail(folder / "toy")
    write_beir(folder / "lone", docs=raw_docs())
    with (write_cocktail(folder / "broken") / "corpus" / "human.jsonl").open("a") as stream:
        stream.write('{"_id": "d4"\n')
    two_model_folder(folder / "three")
    hot = {"human": raw_docs(), "llm-tmp0.2": raw_docs("llm"), "llm-tmp1.0": raw_docs("llm")}
    write_cocktail(folder / "hot", corpora=hot)
    rt.save(people(queries=2, per_gender=2), folder / "people")
    write_run(folder / "run.trec", SCORES)
    write_run(folder / "run", SCORES)
    write(folder / "run.json", json.dumps(SCORES))
    labels(folder)
    judgments(folder)
    write(folder / "q.tsv", "q1\tcold water\nq2\told clocks\n")
    for name, content in {
        "twice": "q1\tone\nq1\ttwo\n",
        "notab": "q1\tone\nq2 two\n",
        "more": "q1\tone\tmore\n",
        "noid": "\tone\n",
        "blank": "q1\tone\nq2\t \n",
        "empty": "",
        "head": "id\ttext\n",
    }.items():
        write(folder / f"{name}.tsv", content)
    write(folder / "none.txt", "nothing here")
    write(folder / "q.txt", "{text} {query}")
    rows = [
        f"q1,cold water,d{n},{'female' if n % 3 else 'male'},Person {n},Known for water.\n"
        for n in range(12)
    ]
    write(
        folder / "people.csv",
        "q_id,q_text,doc_id,gender,doc_title,first sentence\n" + "".join(rows),
    )
    answers = {"question": "What?", "human_answers": ["This."], "chatgpt_answers": ["That."]}
    write(folder / "qa.jsonl", json.dumps(answers))
    collection = rt.load(toy)
    rt.audit(collection, rt.ranker("bm25").rank(collection), ["nDCG@1"], resamples=100).save(
        folder / "audit.json"
    )
    LEVEL.save(folder / "new.json")
    LEVEL.save(folder / "old.json")
    cited = {"cited": ["d1-human"], "consulted": ["d1-human", "d1-llm"]}
    lines = [json.dumps({"query_id": f"q{n}", **cited}) for n in range(3)]
    write(folder / "answers.jsonl", "\n".join(lines))
    rt.cite(folder / "answers.jsonl", f"{folder}/labels.tsv").save(folder / "citations.json")
    write(folder / "log.json", '{"format": "ranktilt-llm-log", "version": 1}')
    write(folder / "cells.csv", "table,dataset\ndai-3,SciFact\n")
    return folder


@pytest.mark.parametrize(
    ("command", "words"),
    [(f"{verb} {rest}", words) for verb, rows in REFUSALS.items() for rest, words in rows],
)
@pytest.mark.usefixtures("no_key")
def test_refusal_is_one_line(
    cli: Cli, inputs: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    monkeypatch.chdir(inputs)
    before = {file: file.stat().st_mtime_ns for file in inputs.rglob("*")}
    assert words in refused(cli, *shlex.split(command))
    assert {file: file.stat().st_mtime_ns for file in inputs.rglob("*")} == before


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("adit", "ranktilt: no such command 'adit'; did you mean 'audit'?"),
        (
            "audit x --measur P@1",
            "ranktilt audit: unknown option --measur; did you mean --measure?",
        ),
        (
            "audit x --set statistics.resamples=99",
            "ranktilt: [statistics] resamples: expected a whole number >= 100",
        ),
        ("audit x --json", "ranktilt audit: --json needs a value"),
        ("audit x y", "ranktilt audit: got unexpected words: y"),
        (
            "audit x --format htm",
            'ranktilt audit: Invalid value "htm" for --format. Choose from: "table", ',
        ),
        ("data mix x", "ranktilt data mix: --output is missing"),
        (
            "data build nq320k x -o y --words 0",
            "ranktilt: expected at least 1 word per text, got 0",
        ),
        (
            "generate rewrite x --llm y --temperature -1",
            'ranktilt generate rewrite: Invalid value "-1.0" for --temperature',
        ),
        (
            "gate x --min-tau x",
            "ranktilt gate: Invalid value for --min-tau: expected a number, got x",
        ),
        (
            "gate x --min-tau=",
            "ranktilt gate: Invalid value for --min-tau: expected a number, got nothing",
        ),
        (
            "data build nq320k x -o y --words x",
            "ranktilt data build nq320k: Invalid value for --words: expected a whole number, got x",
        ),
        (
            "generate versions x --factors length --seed 1.5",
            "ranktilt generate versions: Invalid value for --seed: expected a whole number, got 1.",
        ),
        (
            "generate answer x --llm y -n 0",
            'ranktilt generate answer: Invalid value "0" for -n',
        ),
        ("doctor x", "ranktilt: no such command 'doctor'; did you mean ranktilt tools doctor?"),
    ],
)
def test_wrong_usage_is_one_line_too(cli: Cli, command: str, line: str) -> None:
    code, out, err = cli(*command.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(line)
