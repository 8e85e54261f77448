"""What a start costs before anything is scored: imports and the command's help."""

from __future__ import annotations


class Import:
    """Fresh processes; the second string runs before the clock starts."""

    def timeraw_ragcore(self):
        return "import ragcore"

    def timeraw_score(self):
        return "import ragcore.score", "import numpy, pyarrow, numba"

    def timeraw_kernels(self):
        return "import ragcore_kernels.ranking", "import numpy, numba"

    def timeraw_command(self):
        return "import ragcore.cli"

    def timeraw_help(self):
        return (
            "subprocess.run([sys.executable, '-m', 'ragcore', '--help'], "
            "check=True, stdout=subprocess.DEVNULL)",
            "import subprocess, sys",
        )
