// Package openai maps the wire format of the OpenAI API to inference tasks and back: chat
// completions, completions, embeddings and models. It is pure.
//
// null is the same as no member. A member that the engines do not support is ignored if the
// answer is of the same use without it, and refused with its name otherwise; so is a member
// that the API does not have.
//
// The ids of answers are those of their tasks with other prefixes.
package openai
