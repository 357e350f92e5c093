"""The command line: one file a verb, each parses, calls and delivers.

Start in `app` (panels, help page, how a verb joins) and `main` (errors and exit codes). `options`
declares what verbs share; `statistics_options`, `label_options`, `rankers` and `language_models`
read it. `settings` holds what the machine, ``--set`` and ranktilt.toml say, `output` how results
leave. `tree` lists all commands as data. A verb of several files has a folder, with its own map.
May import everything; nothing imports it. A new verb is a file with a function under `app.verb`,
imported in `main`. Tests: tests/cli.
"""
