package tinymodel

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Shape is the size of a model.
type Shape struct {
	// Width is the size of a token's vector, a multiple of twice Heads. Each head needs at
	// least 32 numbers of it: with fewer, the vLLM engine ends at the first request.
	Width, Layers, Heads, KVHeads, Inner int
	// Context is the longest text, in tokens.
	Context int
}

// Tiny generates some thousand tokens a second on one core; the file has 0.6 MB.
var Tiny = Shape{Width: 64, Layers: 2, Heads: 2, KVHeads: 1, Inner: 128, Context: 16384}

// Slow generates about a hundred tokens a second on one core; the file has 120 MB.
var Slow = Shape{Width: 512, Layers: 10, Heads: 8, KVHeads: 8, Inner: 1280, Context: 16384}

// headWidth is the size of the vector of a head.
func (s Shape) headWidth() int { return s.Width / s.Heads }

// Model is a model with its weights.
type Model struct {
	Shape

	vocabulary []token
	tensors    []tensor
}

// The parts of names of tensors in GGUF: before the number of a layer, and at the end.
const (
	block  = "blk."
	weight = ".weight"
)

// tensor is a matrix by rows, or a vector of one row, with its name in GGUF.
type tensor struct {
	name          string
	rows, columns int
	values        []float32
}

// New returns the model of a seed.
func New(s Shape, seed uint64) *Model {
	m := &Model{Shape: s, vocabulary: vocabulary()}
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable on purpose
	m.random(random, "token_embd", len(m.vocabulary), s.Width, math.Sqrt(float64(s.Width)))
	for i := range s.Layers {
		layer := fmt.Sprint(block, i, ".")
		m.ones(layer + "attn_norm")
		m.random(random, layer+"attn_q", s.Heads*s.headWidth(), s.Width, 2)
		m.random(random, layer+"attn_k", s.KVHeads*s.headWidth(), s.Width, 2)
		m.random(random, layer+"attn_v", s.KVHeads*s.headWidth(), s.Width, 1)
		m.random(random, layer+"attn_output", s.Width, s.Heads*s.headWidth(), 1)
		m.ones(layer + "ffn_norm")
		m.random(random, layer+"ffn_gate", s.Inner, s.Width, 1)
		m.random(random, layer+"ffn_up", s.Inner, s.Width, 1)
		m.random(random, layer+"ffn_down", s.Width, s.Inner, 1)
	}
	m.ones("output_norm")
	m.random(random, "output", len(m.vocabulary), s.Width, 5)
	output := m.tensors[len(m.tensors)-1].values
	for i, t := range m.vocabulary { // only made-up words have a score that is not 0
		if t.kind != word || t.text == space {
			clear(output[i*s.Width : (i+1)*s.Width])
		}
	}
	return m
}

// random adds a matrix of normally distributed numbers. gain is the standard deviation of its
// product with a vector of standard normal numbers.
func (m *Model) random(random *rand.Rand, name string, rows, columns int, gain float64) {
	values := make([]float32, rows*columns)
	scale := gain / math.Sqrt(float64(columns))
	for i := range values {
		values[i] = float32(random.NormFloat64() * scale)
	}
	m.add(name, rows, columns, values)
}

// ones adds the weights of a norm layer, all 1.
func (m *Model) ones(name string) {
	values := make([]float32, m.Width)
	for i := range values {
		values[i] = 1
	}
	m.add(name, 1, m.Width, values)
}

func (m *Model) add(name string, rows, columns int, values []float32) {
	m.tensors = append(m.tensors, tensor{name + weight, rows, columns, values})
}

// dimensions returns the sizes of a tensor, the number of rows first. A vector has one.
func (t tensor) dimensions() []int {
	if t.rows == 1 {
		return []int{t.columns}
	}
	return []int{t.rows, t.columns}
}
