"""A model of words for Triton, which has no weights: each word follows from a hash.

It generates one word a response, for a number of requests at one time. The answer depends on
the prompt and the seed alone. It ends when its request is cancelled. The server's log has the
beginning and the end of each request.
"""

import hashlib
import json
import random
import threading
import time

import numpy
import triton_python_backend_utils as triton

WORDS = [" " + a + b + c for a in ("ba", "do", "fi", "ke", "lu", "mo", "pa", "ru") for b in ("la", "ne", "ri", "so") for c in ("", "n", "r", "s")]
FINAL = triton.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        settings = json.loads(args["model_config"])["parameters"]
        number = lambda name: int(settings[name]["string_value"])
        self.slots = threading.BoundedSemaphore(number("slots"))
        self.context = number("context")
        self.pause = number("pause_microseconds") / 1e6
        self.threads = []

    def execute(self, requests):
        self.threads = [each for each in self.threads if each.is_alive()]
        for request in requests:
            thread = threading.Thread(target=self.serve, args=(request, request.get_response_sender()))
            self.threads.append(thread)
            thread.start()

    def serve(self, request, sender):
        triton.Logger.log_info("request begins")
        end = "failed"
        try:
            with self.slots:
                end = self.generate(request, sender)
        except ValueError as refused:
            sender.send(triton.InferenceResponse(error=triton.TritonError(str(refused), triton.TritonError.INVALID_ARG)))
        finally:
            sender.send(flags=FINAL)
            triton.Logger.log_info("request ends: " + end)

    def generate(self, request, sender):
        prompt, most = value(request, "text_input", b""), int(value(request, "max_tokens", 16))
        if most < 1 or 1 + len(prompt) + most > self.context:
            raise ValueError(f"max_tokens: {most} with a prompt of {len(prompt)} bytes, want 1 to {self.context} with the prompt")
        seed = value(request, "seed", None)
        start = random.randbytes(8) if seed is None else str(int(seed)).encode()
        state = hashlib.sha256(start + b" " + prompt).digest()
        for left in reversed(range(most)):
            if sender.is_cancelled():
                return "cancelled"
            time.sleep(self.pause)
            state = hashlib.sha256(state).digest()
            word = WORDS[int.from_bytes(state[:4], "big") % len(WORDS)]
            sender.send(triton.InferenceResponse(output_tensors=[text("text_output", word), text("finish_reason", "" if left else "length")]))
        return "length"

    def finalize(self):
        for each in self.threads:
            each.join()


def value(request, name, default):
    tensor = triton.get_input_tensor_by_name(request, name)
    return default if tensor is None else tensor.as_numpy().reshape(-1)[0]


def text(name, content):
    return triton.Tensor(name, numpy.array([content.encode()], dtype=object))
