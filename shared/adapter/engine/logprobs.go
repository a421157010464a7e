package engine

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/port"
)

// openaiLogprobs are the probabilities in an event: Content of conversations, and of all answers of
// llama-server; the other members of completions of vLLM.
type openaiLogprobs struct {
	Content []openaiLogprob `json:"content"`

	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float64           `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
}

type openaiLogprob struct {
	Token   string          `json:"token"`
	Logprob float64         `json:"logprob"`
	Bytes   []int           `json:"bytes"`
	Top     []openaiLogprob `json:"top_logprobs"`
}

// token returns the probability of a token. It has the bytes of one that is no UTF-8.
func (p openaiLogprob) token() port.TokenLogprob {
	is := port.TokenLogprob{Token: p.Token, Logprob: p.Logprob}
	raw := make([]byte, len(p.Bytes))
	for i, b := range p.Bytes {
		raw[i] = byte(b) //nolint:gosec // engines send bytes
	}
	if !utf8.Valid(raw) {
		is.Bytes = p.Bytes
	}
	return is
}

// appendTo appends the probabilities, with at most top of the most likely tokens each.
func (l *openaiLogprobs) appendTo(found []port.TokenLogprob, top int) []port.TokenLogprob {
	if l == nil {
		return found
	}
	for _, p := range l.Content {
		is := p.token()
		for _, other := range p.Top {
			is.Top = append(is.Top, other.token())
		}
		// vLLM lists the generated token first.
		slices.SortStableFunc(is.Top, func(x, y port.TokenLogprob) int { return cmp.Compare(y.Logprob, x.Logprob) })
		is.Top = is.Top[:min(top, len(is.Top))]
		found = append(found, is)
	}
	for i, text := range l.Tokens {
		if i >= len(l.TokenLogprobs) || l.TokenLogprobs[i] == nil {
			continue
		}
		is := port.TokenLogprob{Token: text, Logprob: *l.TokenLogprobs[i]}
		if i < len(l.TopLogprobs) {
			for other, p := range l.TopLogprobs[i] {
				is.Top = append(is.Top, port.TokenLogprob{Token: other, Logprob: p})
			}
			slices.SortFunc(is.Top, func(x, y port.TokenLogprob) int {
				return cmp.Or(cmp.Compare(y.Logprob, x.Logprob), cmp.Compare(x.Token, y.Token))
			})
			is.Top = is.Top[:min(top, len(is.Top))]
		}
		found = append(found, is)
	}
	return found
}
