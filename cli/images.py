"""The container images: builds them, and pins what they are made of.

`python -m cli.images build [OPTION…]` builds those of docker-compose.yml, tagged with this release, each with a list of
its contents (SBOM) and its provenance. Options go to `docker buildx build`: `--push`; by default `--load`.
`python -m cli.images digests` pins, in Dockerfile and docker-compose.yml, images that are named without a digest.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
# By the target in the Dockerfile; the last one has no name.
IMAGES = {"": "presage", "database": "presage-database", "proxy": "presage-proxy"}
WITHOUT_DIGEST = re.compile(r"^(?:FROM| +image:) ([a-z/]+:[a-z0-9.-]+)(?= |$)", re.MULTILINE)


def buildx(*options: str) -> str:
    """Run `docker buildx` and return what it prints; its progress is shown."""
    try:
        command = ("docker", "buildx", *options)  # the one that the operator's PATH finds
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError:
        sys.exit("docker is not installed: images are built and looked up by Docker, with its buildx plugin")
    if done.returncode != 0:
        sys.exit(f"docker buildx {options[0]} failed: it takes a running Docker engine and the buildx plugin")
    return done.stdout.strip()


def build(options: list[str]) -> None:
    """Build every image; base images are pulled, as a digest names them."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for target, name in IMAGES.items():
        tag = f"{name}:{version}"
        chosen = ["--target", target] if target else []
        buildx("build", "--sbom=true", "--provenance=mode=max", *chosen, "--tag", tag, *(options or ["--load"]), ".")
        print(f"built {tag}")


def digests() -> None:
    """Pin every image whose name has no digest to the one that its registry gives now."""
    for file in (ROOT / "Dockerfile", ROOT / "docker-compose.yml"):
        text = file.read_text()
        for image in sorted(set(WITHOUT_DIGEST.findall(text))):
            digest = buildx("imagetools", "inspect", image, "--format", "{{.Manifest.Digest}}")
            if not re.fullmatch(r"sha256:[0-9a-f]{64}", digest):
                sys.exit(f"{image}: {digest!r} is not a digest")
            text = re.sub(rf"{re.escape(image)}(?= |$)", f"{image}@{digest}", text, flags=re.MULTILINE)
            print(f"{file.name}: {image}@{digest}")
        file.write_text(text)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["build", *options]:
            build(options)
        case ["digests"]:
            digests()
        case _:
            sys.exit(__doc__)
