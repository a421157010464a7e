package tinymodel

// tokenizer describes the tokenizer. It splits a text into bytes and spaces, and puts the begin
// token first.
func (m *Model) tokenizer() object {
	numbers := object{}
	for i, t := range m.vocabulary {
		numbers[t.text] = i
	}
	special := []object{}
	for i, t := range m.vocabulary[:endToken+1] {
		special = append(special, object{
			"id": i, "content": t.text, "special": true, "normalized": false, "single_word": false, "lstrip": false, "rstrip": false,
		})
	}
	begin := m.vocabulary[beginToken].text
	return object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": special,
		"normalizer": replacement(" ", space), "pre_tokenizer": nil,
		"model": object{
			"type": "BPE", "vocab": numbers, "merges": []string{}, "unk_token": m.vocabulary[unknownToken].text,
			"byte_fallback": true, "fuse_unk": true, "ignore_merges": false,
			"dropout": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
		},
		"post_processor": object{
			"type":   "TemplateProcessing",
			"single": []object{{"SpecialToken": object{"id": begin, "type_id": 0}}, {"Sequence": object{"id": "A", "type_id": 0}}},
			"pair": []object{
				{"SpecialToken": object{"id": begin, "type_id": 0}}, {"Sequence": object{"id": "A", "type_id": 0}}, {"Sequence": object{"id": "B", "type_id": 0}},
			},
			"special_tokens": object{begin: object{"id": begin, "ids": []int{beginToken}, "tokens": []string{begin}}},
		},
		"decoder": object{"type": "Sequence", "decoders": []object{replacement(space, " "), {"type": "ByteFallback"}, {"type": "Fuse"}}},
	}
}

func replacement(of, by string) object {
	return object{"type": "Replace", "pattern": object{"String": of}, "content": by}
}

func (m *Model) tokenizerConfiguration() object {
	return object{
		"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": m.Context, "clean_up_tokenization_spaces": false,
		"unk_token": m.vocabulary[unknownToken].text, "bos_token": m.vocabulary[beginToken].text, "eos_token": m.vocabulary[endToken].text,
		"chat_template": "{{ bos_token }}" + template, // llama-server adds the begin token itself
	}
}
