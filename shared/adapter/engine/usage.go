package engine

import (
	"math"
	"strconv"

	"github.com/sortie-dev/sortie/shared/port"
)

// count is a number of tokens that an engine reports. It is negative if it is malformed, which
// does not end an answer.
type count int

// UnmarshalJSON implements json.Unmarshaler for every value.
func (c *count) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		return nil
	}
	n, err := strconv.ParseFloat(string(text), 64)
	if *c = count(-1); err == nil && n >= 0 && n <= math.MaxInt32 && n == math.Trunc(n) {
		*c = count(n)
	}
	return nil
}

// usageOf returns the usage that an engine reports. It is zero, without Counted, if in or out is
// malformed. A malformed number of reasoning tokens counts as 0.
func usageOf(in, out, reasoning count) port.Usage {
	if in < 0 || out < 0 {
		return port.Usage{}
	}
	return port.Usage{TokensIn: int(in), TokensOut: int(out), ReasoningTokens: max(int(reasoning), 0), Counted: true}
}
