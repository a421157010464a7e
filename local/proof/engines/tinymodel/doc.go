// Package tinymodel makes small language models with random weights, from a seed.
//
// A model has the architecture of Llama. It is written as a GGUF file for llama-server, or as a
// folder of files for vLLM, with the same weights. It generates readable words without meaning.
// It hardly ever generates the end token, so answers end at their limit or at a stop text. A
// prompt needs one token for its beginning and one for each byte.
package tinymodel
