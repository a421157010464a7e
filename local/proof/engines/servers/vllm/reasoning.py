"""A parser of reasoning for a model without tokens that delimit it: Granite's words do. A model
reasons if its prompt has "cause-reasoning", as at the mock engine."""

from vllm.reasoning import ReasoningParserManager
from vllm.reasoning.granite_reasoning_parser import GraniteReasoningParser


@ReasoningParserManager.register_module("words")
class WordsReasoningParser(GraniteReasoningParser):
    def is_reasoning_end(self, input_ids):
        return "cause-reasoning" not in self.model_tokenizer.decode(input_ids)

    def is_reasoning_end_streaming(self, input_ids, delta_ids):
        return False
