package tinymodel

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteFolder writes the files that vLLM reads into an existing folder: the weights as
// safetensors, the configuration and the tokenizer.
func (m *Model) WriteFolder(folder string) error {
	for name, content := range map[string]object{
		"config.json":           m.configuration(),
		"tokenizer.json":        m.tokenizer(),
		"tokenizer_config.json": m.tokenizerConfiguration(),
	} {
		text, err := json.Marshal(content)
		if err != nil {
			return fmt.Errorf("cannot encode %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return fmt.Errorf("cannot write the model: %w", err)
		}
	}
	return m.writeSafetensors(filepath.Join(folder, "model.safetensors"))
}

// object is a JSON object.
type object = map[string]any

func (m *Model) configuration() object {
	return object{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "dtype": "float32",
		"vocab_size": len(m.vocabulary), "max_position_embeddings": m.Context,
		"hidden_size": m.Width, "intermediate_size": m.Inner, "num_hidden_layers": m.Layers,
		"num_attention_heads": m.Heads, "num_key_value_heads": m.KVHeads, "head_dim": m.headWidth(),
		"hidden_act": "silu", "rms_norm_eps": normEpsilon, "rope_parameters": object{"rope_type": "default", "rope_theta": ropeBase},
		"attention_bias": false, "mlp_bias": false, "tie_word_embeddings": false,
		"bos_token_id": beginToken, "eos_token_id": endToken,
	}
}

// writeSafetensors writes a header that describes the weights, then the weights.
func (m *Model) writeSafetensors(file string) error {
	header, offset := object{}, 0
	for _, t := range m.tensors {
		end := offset + 4*len(t.values)
		header[publicName(t.name)] = object{"dtype": "F32", "shape": t.dimensions(), "data_offsets": []int{offset, end}}
		offset = end
	}
	text, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("cannot describe the weights: %w", err)
	}
	return write(file, func(w *writer) {
		w.named(string(text))
		for _, t := range m.tensors {
			w.number(m.halves(t).values)
		}
	})
}

// publicNames maps tensor names of GGUF to tensor names of safetensors. For the tensors of a
// layer it maps the part after the layer number.
var publicNames = map[string]string{ //nolint:gosec // G101: names, no secrets
	"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head",
	"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
	"attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
	"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}

func publicName(name string) string {
	name = strings.TrimSuffix(name, weight)
	if layer, of, found := strings.Cut(strings.TrimPrefix(name, block), "."); found {
		return "model.layers." + layer + "." + publicNames[of] + weight
	}
	return publicNames[name] + weight
}

// halves returns a tensor with its rows in the order that vLLM expects. Both servers rotate
// pairs of numbers of each query and key by the token's position. For llama-server the numbers
// of a pair are adjacent. For vLLM the first numbers are one half of a head, and the second
// numbers the other half.
func (m *Model) halves(t tensor) tensor {
	if !strings.HasSuffix(t.name, "attn_q"+weight) && !strings.HasSuffix(t.name, "attn_k"+weight) {
		return t
	}
	values, half := make([]float32, 0, len(t.values)), m.headWidth()/2
	for head := 0; head < t.rows; head += 2 * half {
		for row := range 2 * half {
			from := (head + row%half*2 + row/half) * t.columns
			values = append(values, t.values[from:from+t.columns]...)
		}
	}
	t.values = values
	return t
}
