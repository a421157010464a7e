// Package tinymodel makes small language models with random weights, from a seed.
//
// A model has the architecture of Llama. It is written as a GGUF file for llama-server, or as
// the files of a folder for vLLM, with the same weights. What it generates is readable words
// without meaning. It hardly ever draws the end of the text, so that answers end by their limit
// or by a stop text. A prompt takes one token for its beginning and one for each of its bytes.
package tinymodel
