package roles

import (
	"context"
	"encoding/json"
)

// manyRetries is the maximum number of retries of a state, in about a day. The history of its
// execution is nearly full then.
const manyRetries = 2880

// oddCalls is the number of unusual calls of each state. A call has no effect if its run has
// ended, so one is not enough.
const oddCalls = 4

// odd makes the first calls of each state unusual and returns their payload. If the state counts
// retries, the payload is that after a day of retries, so that the execution hands the run over
// to a new one. Otherwise odd first makes an extra call: for a state with a token as an
// execution that was replaced, for any other state the same call.
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
