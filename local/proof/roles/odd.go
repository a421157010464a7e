package roles

import (
	"context"
	"encoding/json"
)

// manyRetries is how often a state is retried at most, in about a day. Its execution's
// history is nearly full then.
const manyRetries = 2880

// oddCalls is how many calls of each state are odd: one is without effect if its run has ended.
const oddCalls = 4

// odd makes the first calls of each state what they rarely are, and returns their payload: the one
// after a day of retries, whose execution hands the run over to a new one; or, for a state
// with a token, the second one beside that of an execution that was replaced.
func (h *Home) odd(ctx context.Context, function string, payload json.RawMessage) json.RawMessage {
	var call map[string]any
	if err := json.Unmarshal(payload, &call); err != nil {
		h.fail("the call of %s: %v", function, err)
		return payload
	}
	state, _ := call["step"].(string)
	h.mu.Lock()
	h.entered[state]++
	known := h.entered[state] > oddCalls
	h.mu.Unlock()
	if known {
		return payload
	}
	_, counted := call["retries"]
	replaced := call["token"] != nil
	switch {
	case counted:
		call["retries"] = manyRetries
	case replaced:
		call["execution"] = "replaced"
	}
	text, err := json.Marshal(call)
	if err != nil {
		h.fail("the call of %s: %v", function, err)
		return payload
	}
	if counted {
		return text
	}
	if _, err := h.lambda.Invoke(ctx, function, text); err != nil && replaced {
		h.fail("the call of a replaced execution in %s: %v", state, err)
	}
	return payload
}
