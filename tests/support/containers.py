"""An image for containers, made of this machine's own programs, in a storage that only this test process uses."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from drone.sandbox.container import DEFAULT_IMAGE
from tests.support import needs, wait_until

SYSTEM_PYTHON = "/usr/bin/python3"
PROGRAMS = (
    "awk base64 basename bash cat chmod chown chroot cp curl cut date dd dirname dmesg echo env false find git grep "
    "head hostname id ip kill ln ls mawk mkdir mkfifo mknod mktemp mount mv nohup nsenter printf prlimit ps rev rm "
    "sed seq setpriv setsid sh sleep sort stat stty su tail tee test timeout touch tr true umount uname unshare wc "
    "whoami xargs yes"
)
EMPTY = "dev etc home mnt opt proc root run srv sys tmp usr var"
LEFT_OUT = re.compile(
    "test|idlelib|lib2to3|ensurepip|pydoc_data|dist-packages|__pycache__|tkinter|config-.*|distutils|asyncio"
)
STORAGE = """
[storage]
driver = "overlay"
graphroot = "{0}/graph"
runroot = "{0}/run"
[storage.options.overlay]
skip_mount_home = "true"
"""
ENGINE = """
[engine]
tmp_dir = "{0}/engine"
lock_type = "file"
"""
"""Else podman shares its locks with those of other storages, which it frees at the first use of each."""


@pytest.fixture(scope="session")
def container_image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The default image of container sandboxes; all containers of this process are kept apart from the machine's."""
    needs("podman")
    directory = tmp_path_factory.mktemp("containers")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in engine_environment(directory).items():
            patch.setenv(name, value)
        import_image(directory / "image.tar")
        yield DEFAULT_IMAGE
        wait_until(_emptied, seconds=60)  # containers that have ended are removed by podman, in its own time


def engine_environment(directory: Path) -> dict[str, str]:
    """Variables that give podman a storage in this directory. It needs no mount of its own."""
    storage, engine = directory / "storage.conf", directory / "containers.conf"
    storage.write_text(STORAGE.format(directory))
    engine.write_text(ENGINE.format(directory))
    return {"CONTAINERS_STORAGE_CONF": str(storage), "CONTAINERS_CONF": str(engine)}


def import_image(archive: Path, name: str = DEFAULT_IMAGE) -> None:
    """Make the image, and remove the archive."""
    with tarfile.open(archive, "w") as image:
        _fill(image)
    podman("import", "--quiet", str(archive), name)
    archive.unlink()


def podman(*words: str, **options: object) -> str:
    """Run podman to its end, which must be a good one; return what it printed."""
    done = subprocess.run(["podman", *words], capture_output=True, text=True, check=False, timeout=120, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def _emptied() -> bool:
    """Remove all containers and images."""
    for words in (("rm", "--all"), ("rmi", "--all")):
        subprocess.run(["podman", *words, "--force"], capture_output=True, check=False, timeout=120)
    return not podman("ps", "--all", "--quiet") + podman("images", "--all", "--quiet")


def _fill(image: tarfile.TarFile) -> None:
    for name in EMPTY.split():
        directory = tarfile.TarInfo(name)
        directory.type, directory.mode = tarfile.DIRTYPE, 0o755
        image.addfile(directory)
    for name in ("bin", "sbin", "lib", "lib64"):
        link = tarfile.TarInfo(name)
        link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
        image.addfile(link)
    if (encoding := Path("/usr/lib/locale/C.utf8")).exists():
        image.add(encoding)
    library, modules = _python()
    programs = [shutil.which(name, path="/usr/bin:/usr/sbin:/bin:/sbin") for name in PROGRAMS.split()]
    for path in sorted(_with_libraries([SYSTEM_PYTHON, *filter(None, programs), *modules]) - set(modules)):
        image.add(path, path, recursive=False)
    image.add(library, filter=lambda each: None if LEFT_OUT.fullmatch(Path(each.name).name) else each)


def _python() -> tuple[str, list[str]]:
    """The library of the system's Python, and its modules that need other libraries."""
    ask = "import sysconfig; print(sysconfig.get_path('stdlib'))"
    library = subprocess.check_output([SYSTEM_PYTHON, "-I", "-c", ask], text=True).strip()
    return library, [str(path) for path in Path(library, "lib-dynload").glob("_ctypes.*.so")]


def _with_libraries(paths: list[str]) -> set[str]:
    """The files, those that links among them lead to, and the libraries that they load."""
    found: set[str] = set()
    for path in paths:
        found |= _linked(path)
    told = subprocess.run(["ldd", *found], capture_output=True, text=True, check=False).stdout
    for library in set(re.findall(r"(/\S+) \(0x", told)):
        found |= _linked(library)
    return found


def _linked(path: str) -> set[str]:
    """A file with all links on the way to it, the directories in them resolved."""
    at = Path(path).parent.resolve() / Path(path).name
    found = {str(at)}
    while at.is_symlink():
        to = at.parent / at.readlink()
        at = to.parent.resolve() / to.name
        found.add(str(at))
    return found
