"""The bridge into MLX: a C++ file of ours, compiled at its first use for the MLX that is installed."""

import atexit
import contextlib
import hashlib
import os
import pathlib
import shlex
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time

from . import _core

COMPILE_SECONDS = 120  # then it is given up

_here = pathlib.Path(__file__).resolve().parent
_lock = threading.Lock()


class BridgeError(Exception):
    """There is no bridge; the text says why and what to do."""


def library(anew=False):
    """The path of the compiled bridge, which is made if need be. `anew`: the one that is there is
    of no use. Raises BridgeError."""
    with _lock:
        command, key = _command()
        folder = _folder()
        if folder is None:  # for this process alone
            folder = pathlib.Path(tempfile.mkdtemp(prefix="picokernel-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
        path = folder / f"mlx-{key}.so"
        if anew:
            path.unlink(missing_ok=True)
        if not _ours(path):
            with _only_process(folder / "mlx.lock"):
                if not _ours(path):
                    _compile(command, path)
        return str(path)


def built():
    """The folder with the compiled bridge; None: it is not built. Compiles nothing. Raises BridgeError."""
    _, key = _command()
    folder = _folder()
    return folder if folder is not None and _ours(folder / f"mlx-{key}.so") else None


def state():
    """For people: whether the bridge is built, or why not."""
    try:
        folder = built()
    except (BridgeError, ImportError) as e:
        return f"none: {e}".replace("\n", " ")
    return (
        f"built, in {folder}" if folder else "not built yet: the first call on MLX arrays does it"
    )


def _command():
    """The compiler's command but for what it makes, and a text for all that the result depends on."""
    import mlx.core as mx

    root = pathlib.Path(mx.__file__).resolve().parent
    headers, libraries = root / "include", root / "lib"
    if not (headers / "mlx" / "primitives.h").exists():
        raise BridgeError(f"this MLX has no C++ headers in {headers}\n  hint: pip install mlx")
    ours = _here / "include"  # in wheels
    if not ours.exists():
        ours = _here.parent.parent / "include"
    source = _here / "bridge" / "mlx_bridge.cpp"
    command = [
        *("-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w"),
        *(f"-I{ours}", f"-I{headers}", str(source), f"-L{libraries}", "-lmlx"),
    ]
    digest = hashlib.sha256(repr((mx.__version__, command)).encode())
    for file in [*sorted((_here / "bridge").iterdir()), *sorted((ours / "picokernel").iterdir())]:
        if file.is_file():
            digest.update(file.read_bytes())
    for file in sorted(libraries.glob("libmlx.*")):  # a build of one's own keeps its version
        digest.update(repr((file.stat().st_size, file.stat().st_mtime_ns)).encode())
    return command, f"{mx.__version__}-{digest.hexdigest()[:24]}"


def _compiler():
    named = shlex.split(os.environ.get("CXX", ""))
    for words in [named] if named else [["c++"], ["g++"], ["clang++"]]:
        if found := shutil.which(words[0]):
            return [found, *words[1:]]
    raise BridgeError(
        f"CXX={named[0]} is no program"
        if named
        else "there is no C++ compiler: c++, g++ or clang++"
    )


def _compile(command, path):
    compiler = _compiler()
    handle, made = tempfile.mkstemp(prefix="mlx-", suffix=".tmp", dir=path.parent)
    os.close(handle)
    try:
        with tempfile.TemporaryFile() as output:
            run = subprocess.Popen(
                [*compiler, *command, "-o", made],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            try:
                run.wait(COMPILE_SECONDS)
            except BaseException:
                os.killpg(run.pid, signal.SIGKILL)  # compilers start other programs
                run.wait()
                raise
            output.seek(0)
            lines = output.read().decode(errors="replace").splitlines()
        if run.returncode != 0:
            error = next((line for line in lines if "error" in line), " ".join(lines[:1]))
            raise BridgeError(f"{compiler[0]} cannot compile it: {error or 'it gives no reason'}")
        os.chmod(made, 0o700)
        os.replace(made, path)
    except subprocess.TimeoutExpired:
        raise BridgeError(f"{compiler[0]} took more than {COMPILE_SECONDS} s") from None
    except OSError as e:
        raise BridgeError(f"it cannot be compiled: {e}") from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made)


def _folder():
    """The folder of the kernels' cache, which only its user writes to; None: there is none."""
    folder, problem, _, _, most_bytes = _core.cache_contents()
    if not folder or problem or most_bytes == 0:
        return None
    folder = pathlib.Path(folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.lstat()
    except OSError:
        return None
    private = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid()
    return folder if private and facts.st_mode & 0o022 == 0 else None


def _ours(path):
    try:
        facts = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o022


@contextlib.contextmanager
def _only_process(path):
    """One process of those that want it compiles; who waits too long compiles as well."""
    import fcntl

    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "w") as file:
        end = time.monotonic() + COMPILE_SECONDS
        while time.monotonic() < end:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                time.sleep(0.05)
        yield
