"""Write the generated modules into the package `presage_client`."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from generator.modules import PACKAGES, write

PACKAGE = Path(__file__).parents[1] / "presage_client"

with TemporaryDirectory() as folder:
    write(Path(folder))  # first as a whole elsewhere: what fails leaves the package as it is
    for name in PACKAGES:
        shutil.rmtree(PACKAGE / name)
    shutil.copytree(folder, PACKAGE, dirs_exist_ok=True)
