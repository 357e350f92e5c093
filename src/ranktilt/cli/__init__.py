"""The command line: one file a verb, each parses, calls and delivers.

Start in `app` (panels, help page, how a verb joins) and `main` (errors and exit codes). The files
named as verbs are verbs; `build` adds the commands of `data build`. `options` declares what verbs
share; `statistics_options`, `label_options`, `saved_runs`, `rankers` and `language_models` read it.
`settings` holds what the machine, ``--set`` and ranktilt.toml say, `output` how results leave,
`notes` what stderr shows. `tree` lists all commands as data; `help_spec` and `completion` serve
help and the shell. A verb of several files has a folder, with its own map. Words of this room: a
*verb* is a command such as ``audit``; a *spec* is the text that names a ranker or a model with its
options, ``bm25(k1=0.9)``; the *output* is where a result goes (terminal, ``--json`` file,
``-o`` page); a *next step* is the command that a print ends with.

May import everything; nothing imports it. A new verb is a file with a function under `app.verb`,
imported in `main`. Tests: tests/cli.
"""
