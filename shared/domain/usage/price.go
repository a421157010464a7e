package usage

// Prices are the prices of a token, in nano-dollars.
type Prices struct {
	InputPrice int64 `json:"inputPrice,omitempty"`
	// CachedPrice is that of an input token that the engine has read from its cache, at most
	// InputPrice; nil is InputPrice.
	CachedPrice *int64 `json:"cachedPrice,omitempty"`
	OutputPrice int64  `json:"outputPrice,omitempty"`
}

// Cost returns the cost of tokens, in nano-dollars.
func (p Prices) Cost(t Tokens) int64 {
	cached := p.InputPrice
	if p.CachedPrice != nil {
		cached = *p.CachedPrice
	}
	return (t.Input-t.Cached)*p.InputPrice + t.Cached*cached + t.Output*p.OutputPrice
}

// Of returns the tokens of a task. No more tokens of the prompt are cached than it has.
func Of(input, cached, output int) Tokens {
	return Tokens{Input: int64(input), Cached: int64(min(max(cached, 0), input)), Output: int64(output)}
}
