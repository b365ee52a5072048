"""The kernel in the wheel starts, speaks Jupyter's protocol and has the magics loaded."""

from __future__ import annotations

from typing import Any

import jupyter_kernel_test


class KernelspecTests(jupyter_kernel_test.KernelTests):  # type: ignore[misc] # has no types
    """The messages of the protocol, as jupyter_kernel_test sends them to every kernel."""

    kernel_name = "meganeura"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_execute_result = ({"code": "6 * 7", "result": "42"},)
    code_display_data = (
        {
            "code": "from IPython.display import HTML, display; display(HTML('<b>1</b>'))",
            "mime": "text/html",
        },
    )
    code_stderr = "import sys; print('to the other stream', file=sys.stderr)"
    code_clear_output = "from IPython.display import clear_output; clear_output()"
    code_page_something = "print?"
    code_generate_error = "1 / 0"
    code_inspect_sample = "print"
    complete_code_samples = ("1", "print('hello, world')", "%meganeura devices")
    incomplete_code_samples = ("for node in graph:", "print('''hello")
    invalid_code_samples = ("import = 7q",)
    completion_samples = ({"text": "%megan", "matches": {"%meganeura", "%%meganeura"}},)

    def test_magics_are_loaded(self) -> None:
        """The extension is loaded before the first cell, as a line and as a cell magic."""
        reply, output = self.reply_and_output(
            "magics = get_ipython().magics_manager.magics\n"
            "print(*sorted(kind for kind in magics if 'meganeura' in magics[kind]))"
        )
        assert reply["content"]["status"] == "ok"
        assert output == "cell line\n"

    def reply_and_output(self, code: str) -> tuple[dict[str, Any], str]:
        """The kernel's reply to the code, and what it printed."""
        self.flush_channels()
        reply, messages = self.execute_helper(code=code)
        streams = [m["content"]["text"] for m in messages if m["msg_type"] == "stream"]
        return reply, "".join(streams)
