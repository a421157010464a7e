package openai

import (
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/port"
)

// probabilities contains the members of a chat about the probabilities of tokens.
type probabilities struct {
	Logprobs    *bool `json:"logprobs"`
	TopLogprobs *int  `json:"top_logprobs"`
}

// apply sets the number of the most likely tokens. It refuses it without logprobs.
func (p probabilities) apply(o *port.GenerationOptions) error {
	switch on := p.Logprobs != nil && *p.Logprobs; {
	case !on && p.TopLogprobs != nil && *p.TopLogprobs != 0:
		return unsupported("top_logprobs", "logprobs: true beside it")
	case on && p.TopLogprobs != nil:
		o.Logprobs = p.TopLogprobs
	case on:
		o.Logprobs = new(int)
	}
	return nil
}

// Logprobs are the probabilities of the tokens of a choice. A chat has Content, a text completion the
// other members, whose arrays have an element for each token.
type Logprobs struct {
	Content       []TokenLogprob       `json:"content,omitempty"`
	Tokens        []string             `json:"tokens,omitempty"`
	TokenLogprobs []float64            `json:"token_logprobs,omitempty"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs,omitempty"`
	// TextOffset are the places of the tokens in the text, in characters.
	TextOffset []int `json:"text_offset,omitempty"`
}

// TokenLogprob is the probability of a token of a chat. Top is nil for the tokens of a Top.
type TokenLogprob struct {
	Token   string         `json:"token"`
	Logprob float64        `json:"logprob"`
	Bytes   []int          `json:"bytes"`
	Top     []TokenLogprob `json:"top_logprobs,omitzero"`
}

func tokenLogprob(p port.TokenLogprob) TokenLogprob {
	is := TokenLogprob{Token: p.Token, Logprob: p.Logprob, Bytes: p.Bytes}
	if is.Bytes == nil {
		is.Bytes = []int{}
		for _, b := range []byte(p.Token) {
			is.Bytes = append(is.Bytes, int(b))
		}
	}
	return is
}

// tokenLogprobs returns the probabilities of tokens of a chat or a response; not nil.
func tokenLogprobs(of []port.TokenLogprob) []TokenLogprob {
	found := make([]TokenLogprob, len(of))
	for i, p := range of {
		found[i] = tokenLogprob(p)
		found[i].Top = []TokenLogprob{}
		for _, other := range p.Top {
			found[i].Top = append(found[i].Top, tokenLogprob(other))
		}
	}
	return found
}

// logprobs returns the probabilities of tokens in the form; nil for none. offset is the place of the
// first one in the text, in characters.
func (f Form) logprobs(of []port.TokenLogprob, offset int) *Logprobs {
	if len(of) == 0 {
		return nil
	}
	var is Logprobs
	if f.chat() {
		is.Content = tokenLogprobs(of)
		return &is
	}
	for _, p := range of {
		top := map[string]float64{}
		for _, other := range p.Top {
			top[other.Token] = other.Logprob
		}
		is.Tokens, is.TokenLogprobs = append(is.Tokens, p.Token), append(is.TokenLogprobs, p.Logprob)
		is.TopLogprobs, is.TextOffset = append(is.TopLogprobs, top), append(is.TextOffset, offset)
		offset += utf8.RuneCountInString(p.Token)
	}
	return &is
}
