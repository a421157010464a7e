package tinymodel

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSafetensors checks that the weights file has each tensor under its public name.
func TestSafetensors(t *testing.T) {
	t.Parallel()
	m, folder := New(Tiny, 1), t.TempDir()
	if err := m.WriteFolder(folder); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	var header map[string]struct {
		Kind    string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	size := binary.LittleEndian.Uint64(text)
	if err := json.Unmarshal(text[8:8+size], &header); err != nil {
		t.Fatal(err)
	}
	if len(header) != 3+9*Tiny.Layers {
		t.Errorf("got %d tensors, want three and nine for each layer", len(header))
	}
	weights := text[8+size:]
	for name, want := range map[string]tensor{
		"model.embed_tokens.weight": m.tensors[0], "model.layers.1.input_layernorm.weight": m.tensors[10],
		"model.layers.1.self_attn.q_proj.weight": m.halves(m.tensors[11]), "model.layers.0.mlp.down_proj.weight": m.tensors[9],
		"lm_head.weight": m.tensors[len(m.tensors)-1],
	} {
		got := header[name]
		values := make([]float32, len(want.values))
		if _, err := binary.Decode(weights[got.Offsets[0]:got.Offsets[1]], binary.LittleEndian, values); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Kind != "F32" || !slices.Equal(got.Shape, want.dimensions()) || !slices.Equal(values, want.values) {
			t.Errorf("%s: got %s of %v, or other values, want F32 of %v", name, got.Kind, got.Shape, want.dimensions())
		}
	}
}

// TestHalves checks a tensor with two heads of four rows: each head has its even rows first.
func TestHalves(t *testing.T) {
	t.Parallel()
	m := &Model{Shape: Shape{Width: 8, Heads: 2}}
	rows := []float32{0, 1, 2, 3, 4, 5, 6, 7}
	if got, want := m.halves(tensor{"blk.0.attn_k.weight", 8, 1, rows}).values, []float32{0, 2, 1, 3, 4, 6, 5, 7}; !slices.Equal(got, want) {
		t.Errorf("got the rows %v of keys, want %v", got, want)
	}
	if got := m.halves(tensor{"blk.0.attn_v.weight", 8, 1, rows}).values; !slices.Equal(got, rows) {
		t.Errorf("got the rows %v of values, want %v", got, rows)
	}
}
