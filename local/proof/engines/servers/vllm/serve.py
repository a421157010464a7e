"""Runs the server of vLLM with the arguments of this program.

It ends with all its processes when standard input ends: when the program that started it has
ended, whatever ended that.
"""

import os
import runpy
import signal
import threading


def end_with_standard_input():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=end_with_standard_input, daemon=True).start()
    runpy.run_module("vllm.entrypoints.openai.api_server", run_name="__main__")
