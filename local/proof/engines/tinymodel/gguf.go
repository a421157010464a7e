package tinymodel

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// The numbers of the types of values in GGUF, version 3.
const (
	ggufUint32  uint32 = 4
	ggufInt32   uint32 = 5
	ggufFloat32 uint32 = 6
	ggufBool    uint32 = 7
	ggufString  uint32 = 8
	ggufArray   uint32 = 9
)

// ggufAlignment aligns the data of each tensor, in bytes.
const ggufAlignment = 32

// WriteGGUF writes the model as one file for llama-server.
func (m *Model) WriteGGUF(file string) error {
	return write(file, func(w *writer) {
		values := m.ggufValues()
		w.text("GGUF")
		w.number(uint32(3), uint64(len(m.tensors)), uint64(len(values)))
		for _, v := range values {
			w.named(v.name)
			w.value(v.value)
		}
		offset := 0
		for _, t := range m.tensors {
			w.named(t.name)
			sizes := t.dimensions()
			w.number(uint32(len(sizes))) //nolint:gosec // G115: 1 or 2
			for i := range sizes {       // fastest-varying dimension first
				w.number(uint64(sizes[len(sizes)-1-i])) //nolint:gosec // G115: small
			}
			w.number(uint32(0), uint64(offset)) // 0: float32
			offset += aligned(4 * len(t.values))
		}
		w.pad(aligned(w.written) - w.written)
		for _, t := range m.tensors {
			w.number(t.values)
			w.pad(aligned(4*len(t.values)) - 4*len(t.values))
		}
	})
}

func aligned(size int) int { return (size + ggufAlignment - 1) / ggufAlignment * ggufAlignment }

type ggufValue struct {
	name  string
	value any
}

// ggufValues returns the settings of the model and its vocabulary.
func (m *Model) ggufValues() []ggufValue {
	texts, scores, kinds := make([]string, len(m.vocabulary)), make([]float32, len(m.vocabulary)), make([]int32, len(m.vocabulary))
	for i, t := range m.vocabulary {
		texts[i], kinds[i] = t.text, int32(t.kind)
		if t.kind == word {
			scores[i] = -float32(i)
		}
	}
	size := func(n int) uint32 { return uint32(n) } //nolint:gosec // G115: small
	return []ggufValue{
		{"general.architecture", "llama"},
		{"general.name", "tiny"},
		{"llama.context_length", size(m.Context)},
		{"llama.embedding_length", size(m.Width)},
		{"llama.block_count", size(m.Layers)},
		{"llama.feed_forward_length", size(m.Inner)},
		{"llama.attention.head_count", size(m.Heads)},
		{"llama.attention.head_count_kv", size(m.KVHeads)},
		{"llama.attention.layer_norm_rms_epsilon", float32(normEpsilon)},
		{"llama.rope.dimension_count", size(m.headWidth())},
		{"llama.rope.freq_base", float32(ropeBase)},
		{"llama.vocab_size", size(len(m.vocabulary))},
		{"tokenizer.ggml.model", "llama"},
		{"tokenizer.ggml.pre", "default"},
		{"tokenizer.ggml.tokens", texts},
		{"tokenizer.ggml.scores", scores},
		{"tokenizer.ggml.token_type", kinds},
		{"tokenizer.ggml.bos_token_id", uint32(beginToken)},
		{"tokenizer.ggml.eos_token_id", uint32(endToken)},
		{"tokenizer.ggml.unknown_token_id", uint32(unknownToken)},
		{"tokenizer.ggml.add_bos_token", true},
		{"tokenizer.ggml.add_eos_token", false},
		{"tokenizer.ggml.add_space_prefix", false},
		{"tokenizer.chat_template", template},
	}
}

const (
	normEpsilon = 1e-5
	ropeBase    = 10000
)

// writer writes numbers in little-endian order. It keeps the first error.
type writer struct {
	to      *bufio.Writer
	written int
	err     error
}

// write creates the file and writes its content.
func write(file string, content func(*writer)) error {
	f, err := os.Create(file) //nolint:gosec // G304: the caller's own file
	if err != nil {
		return fmt.Errorf("cannot create the model: %w", err)
	}
	w := &writer{to: bufio.NewWriterSize(f, 1<<20)}
	content(w)
	err = w.err
	if flushed := w.to.Flush(); err == nil {
		err = flushed
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("cannot write the model: %w", err)
	}
	return nil
}

// number writes numbers, or slices of them.
func (w *writer) number(values ...any) {
	for _, v := range values {
		if w.err == nil {
			w.err = binary.Write(w.to, binary.LittleEndian, v)
			w.written += binary.Size(v)
		}
	}
}

func (w *writer) text(text string) {
	if w.err == nil {
		_, w.err = io.WriteString(w.to, text)
		w.written += len(text)
	}
}

func (w *writer) pad(count int) { w.text(string(make([]byte, count))) }

// named writes the length of a text, then the text.
func (w *writer) named(text string) {
	w.number(uint64(len(text)))
	w.text(text)
}

// value writes the type of a value, then the value.
func (w *writer) value(value any) {
	switch v := value.(type) {
	case uint32:
		w.number(ggufUint32, v)
	case float32:
		w.number(ggufFloat32, v)
	case bool:
		w.number(ggufBool, v)
	case string:
		w.number(ggufString)
		w.named(v)
	case []string:
		w.number(ggufArray, ggufString, uint64(len(v)))
		for _, each := range v {
			w.named(each)
		}
	case []float32:
		w.number(ggufArray, ggufFloat32, uint64(len(v)), v)
	case []int32:
		w.number(ggufArray, ggufInt32, uint64(len(v)), v)
	default:
		panic(fmt.Sprintf("tinymodel: no type for %T", value))
	}
}
