// Package openai converts the wire format of the OpenAI API to inference tasks and back: chat
// completions, completions, responses, embeddings and models, and /v1/rerank of Jina and Cohere. It is
// pure.
//
// A member that is null counts as absent. A member that the engines do not support is ignored
// if it does not affect the answer, such as a name for accounting. Every other unsupported or
// unknown member is refused with its name.
//
// The id of an answer is the id of its task with another prefix.
package openai
